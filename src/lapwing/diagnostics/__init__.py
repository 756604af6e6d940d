"""How far a result can be trusted: certificates, sampling noise, and named problems."""
