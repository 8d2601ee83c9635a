"""Two runs side by side: which tokens and heads stand for which, and how much each head differs."""
