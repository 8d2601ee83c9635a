"""How the window looks: themes, colour maps, sizes of text."""
