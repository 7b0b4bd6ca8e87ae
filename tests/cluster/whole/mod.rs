//! What the whole cluster lives through: a control plane that goes, forgets and is another one, rights that are taken, a node
//! beside another that loses its power. Nothing else may run meanwhile, so these come last and one after the other.

mod chart;
mod control_plane;
mod reboot;
mod rights;
mod why;
