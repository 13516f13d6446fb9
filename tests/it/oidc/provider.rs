//! A real provider.
