"""sparcml: sum vectors across machines and send only what matters."""
