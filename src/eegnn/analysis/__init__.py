"""What a trained model could do: outputs at every layer, exits at every threshold, the oracle."""
