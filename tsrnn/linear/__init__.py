"""Classical models as linear recurrent networks, fitted by maximum likelihood."""
