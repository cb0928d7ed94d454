"""Odd frames through every call: an answer, or a refusal that says what to do."""
