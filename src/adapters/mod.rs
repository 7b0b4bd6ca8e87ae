//! The outside world, inbound and outbound. Adapters do not import one another; `main` wires them.
