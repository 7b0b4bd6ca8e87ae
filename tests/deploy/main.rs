//! The chart and the overlays of deploy/, rendered by helm and kustomize themselves: they install the same objects, take every
//! flag of the binary, refuse what it refuses, watch it with what deploy/monitoring has, and say in one table what each value is.
//!
//! No cluster is asked; the real cluster's cases install what is rendered here. Cases that need the tools are ignored by
//! default, for those are built with Go: `tests/deploy/run` builds them and runs everything.

mod flags;
mod judged;
mod monitoring;
mod render;
mod same_objects;
mod table;
mod tool;
