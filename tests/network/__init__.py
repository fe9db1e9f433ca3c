"""Networks: real ones in namespaces, and what is said about them."""
