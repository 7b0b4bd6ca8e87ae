//! What all use cases share: the ports, the locks, and the driver's settings.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::lock::Mutex as AsyncMutex;

use super::events::Events;
use super::sight::Sight;
use crate::domain::handle::Handle;
use crate::domain::kept::{ServedTime, served_before};
use crate::domain::locks::HandleLocks;
use crate::domain::proof::Epochs;
use crate::domain::signal::Signal;
use crate::domain::tally::Tally;
use crate::domain::target::KubeletDir;
use crate::domain::time::Monotonic;
use crate::domain::trash::TrashId;
use crate::ports::clock::Clock;
use crate::ports::cluster::Cluster;
use crate::ports::copies::Copies;
use crate::ports::event_sink::EventSink;
use crate::ports::mounts::Mounts;
use crate::ports::records::Records;

/// The world, as adapters implement it.
#[derive(Clone)]
pub struct Ports {
    pub mounts: Arc<dyn Mounts>,
    pub copies: Arc<dyn Copies>,
    pub records: Arc<dyn Records>,
    pub clock: Arc<dyn Clock>,
    pub sink: Arc<dyn EventSink>,
    /// `None` with `--standalone`: nothing is swept, and no kubelet's files are looked for.
    pub cluster: Option<Arc<dyn Cluster>>,
}

/// What an operator can set that decisions depend on.
#[derive(Debug, Clone)]
pub struct Settings {
    pub driver_name: String,
    /// The node's name, as events about it want it.
    pub node_name: String,
    pub kubelet_dir: KubeletDir,
    pub sweep_every: Duration,
    pub event_window: Duration,
    pub brakes: Brakes,
}

/// What an operator may put between a deleted volume and the end of its copy (C26). By default nothing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Brakes {
    /// How long removed copies are kept in the trash.
    pub trash_for: Option<Duration>,
    /// A pass of the sweep that would remove more copies than this removes none.
    pub sweep_limit: Option<u32>,
}

/// One driver on one node. Its methods are the use cases; each has a file of its own beside this one.
pub struct Driver {
    pub(super) ports: Ports,
    pub(super) settings: Settings,
    pub(super) locks: HandleLocks,
    pub(super) epochs: Epochs,
    pub(super) tally: Arc<Tally>,
    pub(super) events: Events,
    /// Raised when a pass of the sweep may find something to do before its next tick.
    pub(super) sweep_wanted: Arc<Signal>,
    /// Raised when something came into the trash.
    pub(super) trash_wanted: Signal,
    /// Copies of which nobody knows whether they are condemned on record (C23).
    pub(super) undecided: Mutex<BTreeSet<Handle>>,
    /// What was last seen, for the report.
    pub(super) sight: Sight,
    /// One drain of the trash at a time.
    pub(super) trash_drain: AsyncMutex<()>,
    /// Kept copies that somebody restores or empties now.
    pub(super) claimed: Mutex<BTreeSet<TrashId>>,
    /// A call met a full file system: the oldest kept copy makes room, whatever the file system says it has left.
    pub(super) room_wanted: AtomicBool,
    /// The store's own time when this process began, and when that was.
    began: (ServedTime, Monotonic),
}

impl Driver {
    /// A driver whose event series go on where the store's records left them. `sweep_wanted` is for whoever
    /// can tell that a sweep may find something: the watch, which is made before the driver.
    pub fn new(ports: Ports, settings: Settings, tally: Arc<Tally>, sweep_wanted: Arc<Signal>) -> Driver {
        let events = Events::new(settings.event_window, ports.records.series());
        let served = ports.records.keeping().map(|keeping| keeping.served);
        let began = (served_before(served, &ports.records.kept_trash()), ports.clock.monotonic());
        Driver {
            ports,
            settings,
            locks: HandleLocks::default(),
            epochs: Epochs::default(),
            tally,
            events,
            sweep_wanted,
            trash_wanted: Signal::default(),
            undecided: Mutex::default(),
            sight: Sight::default(),
            trash_drain: AsyncMutex::new(()),
            claimed: Mutex::default(),
            room_wanted: AtomicBool::default(),
            began,
        }
    }

    /// How long the store has been served in all, up to now.
    pub(super) fn served(&self) -> ServedTime {
        let (before, began) = self.began;
        before.after(self.ports.clock.monotonic().since(began))
    }

    /// For the loop that sweeps.
    pub fn sweep_wanted(&self) -> &Signal {
        &self.sweep_wanted
    }

    /// For the loops: how often they act without being told to.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// For the loop that drains the trash.
    pub fn trash_wanted(&self) -> &Signal {
        &self.trash_wanted
    }

    /// For the loop that posts events.
    pub fn events_wanted(&self) -> &Signal {
        self.events.wanted()
    }

    pub fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }
}
