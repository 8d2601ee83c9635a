"""Hidden: states, scores and context of a recurrent model."""
