"""What every block writes into the residual stream, and one block taken apart, read off the model as it ran."""
