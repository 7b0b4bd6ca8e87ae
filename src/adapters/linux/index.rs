//! Which mounts of this namespace show a place in the store, known without reading all of them.
//!
//! The kernel says which mounts changed (`events`) and which entries of the store were renamed (`renames`); each is asked
//! about once, and those that show nothing of the store are forgotten. Of what is kept, a question asks again about those
//! mounts that its answer would name, and those that show something below a copy: nothing tells of what is moved there. Where
//! the kernel says too little, questions read the whole table unless it is known to be the same: the answer is the same,
//! only slower.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::events::{Changes, MountEvents};
use super::failure::{Failure, Outcome};
use super::places::{self, Cover, Place, StoreRoots};
use super::polled::PolledTable;
use super::renames::{Renamed, StoreRenames};
use super::store::StoreDirs;
use super::syscalls::LISTMOUNT_ROOT;
use super::view::{self, MountEntry, View};

/// The store's part of the mount table.
#[derive(Debug)]
pub struct Seen {
    pub roots: StoreRoots,
    pub mounts: Vec<(MountEntry, Place)>,
}

/// The index.
#[derive(Debug)]
pub struct Index {
    /// `None` where the kernel does not tell of both.
    events: Option<Events>,
    /// `None` before the first list, and after a loss.
    known: Option<Known>,
    /// The mount that the store lies on, which stays the same however it is moved: the store is open.
    store_mount: Option<u64>,
    /// What stands in for events.
    polled: PolledTable,
}

/// What the kernel tells of.
#[derive(Debug)]
struct Events {
    mounts: MountEvents,
    renames: StoreRenames,
}

#[derive(Debug)]
struct Known {
    roots: StoreRoots,
    shown: BTreeMap<u64, Place>,
    covers: BTreeMap<u64, Cover>,
}

impl Index {
    /// With the kernel's events where `watch` allows and it has them.
    pub fn new(store: &StoreDirs, watch: bool) -> Index {
        let events = watch.then(|| Events::watch(store)).and_then(|watching| {
            let told = |failure: &Failure| {
                let Failure { step, errno } = failure;
                tracing::info!(step, %errno, "mounts and renames are not told: the table is polled");
            };
            watching.inspect_err(told).ok()
        });
        Index { events, known: None, store_mount: None, polled: PolledTable::default() }
    }

    /// Whether the index lives on the kernel's events.
    pub fn is_watching(&self) -> bool {
        self.events.is_some()
    }

    /// The roots of the store, covers included, as of now, and the view to ask with.
    pub fn roots(&mut self, store: &StoreDirs) -> Outcome<(Arc<View>, StoreRoots)> {
        if self.follow(store.root())?
            && let Some(known) = &self.known
        {
            return Ok((Arc::new(View::Kernel), known.roots.clone()));
        }
        let (view, seen) = self.polled(store)?;
        Ok((view, seen.roots))
    }

    /// The mounts that show a wanted place in the store, as of now.
    pub fn showing(&mut self, store: &StoreDirs, wanted: impl Fn(&Place) -> bool) -> Outcome<Seen> {
        let mut seen = self.maybe_showing(store, &wanted)?;
        seen.mounts.retain(|(_, place)| wanted(place));
        Ok(seen)
    }

    /// These, and perhaps others.
    fn maybe_showing(&mut self, store: &StoreDirs, wanted: impl Fn(&Place) -> bool) -> Outcome<Seen> {
        if !self.follow(store.root())? || !self.follow_renames(store.root())? {
            return Ok(self.polled(store)?.1);
        }
        let Some(known) = self.known.as_mut() else { return seen_afresh(store.root()) };
        let mut mounts = Vec::new();
        let mut gone = Vec::new();
        for (&id, place) in &mut known.shown {
            if !place.below && !wanted(place) {
                continue;
            }
            let Some(entry) = View::Kernel.entry(id)? else {
                gone.push(id);
                continue;
            };
            if let Some(now) = known.roots.place_of(entry.device, &entry.root) {
                *place = now;
                mounts.push((entry, place.clone()));
            }
        }
        for id in gone {
            known.shown.remove(&id);
        }
        Ok(Seen { roots: known.roots.clone(), mounts })
    }

    /// What stands in for the index, and the view that it was got from.
    fn polled(&mut self, store: &StoreDirs) -> Outcome<(Arc<View>, Seen)> {
        let view = self.polled.current(store)?;
        let seen = seen_in(&view, store.root())?;
        // What is bound from below a copy may be moved or deleted there, of which nothing that is polled tells.
        if seen.mounts.iter().any(|(_, place)| place.below) {
            self.polled.forget();
        }
        Ok((view, seen))
    }

    /// Brings the index up to date; false where it cannot be kept.
    fn follow(&mut self, store: BorrowedFd<'_>) -> Outcome<bool> {
        let Some(events) = &self.events else { return Ok(false) };
        let changes = events.mounts.drain()?;
        let roots = self.store_roots(store)?;
        let moved = self.known.as_ref().is_none_or(|known| !known.roots.same_store(&roots));
        match changes {
            Changes::Mounts(ids) if !moved => {
                for id in ids {
                    if self.apply(id)? {
                        return self.rebuild(store);
                    }
                }
                Ok(true)
            }
            Changes::Mounts(_) | Changes::Lost => self.rebuild(store),
        }
    }

    /// What [`View::store_roots`] says, by one question about the mount in place of two.
    fn store_roots(&mut self, store: BorrowedFd<'_>) -> Outcome<StoreRoots> {
        let mount = match self.store_mount {
            Some(id) => View::Kernel.entry(id)?,
            None => None,
        };
        let mount = mount.map_or_else(|| View::Kernel.mount_of(store), Ok)?;
        self.store_mount = Some(mount.id);
        view::roots_on(&mount, store)
    }

    /// Looks at one mount again. True where covers changed, so that every other mount has to be looked at too.
    fn apply(&mut self, id: u64) -> Outcome<bool> {
        let Some(known) = self.known.as_mut() else { return Ok(true) };
        let Some(entry) = View::Kernel.entry(id)? else {
            known.shown.remove(&id);
            return Ok(known.covers.contains_key(&id));
        };
        if known.covers.get(&id) != known.roots.cover_of(&entry).as_ref() {
            return Ok(true);
        }
        // One that is known and shows nothing now stays: what it shows may come back, and be no event.
        if let Some(place) = known.roots.place_of(entry.device, &entry.root) {
            known.shown.insert(id, place);
        }
        Ok(false)
    }

    /// Looks again at what shows a renamed entry of the store; false where the index can no longer be kept.
    fn follow_renames(&mut self, store: BorrowedFd<'_>) -> Outcome<bool> {
        let Some(events) = &self.events else { return Ok(false) };
        match events.renames.drain()? {
            Renamed::Names(names) => {
                let Some(known) = self.known.as_mut() else { return self.rebuild(store) };
                for (&id, place) in known.shown.iter_mut().filter(|(_, place)| names.contains(&place.name)) {
                    let entry = View::Kernel.entry(id)?;
                    let now = entry.and_then(|entry| known.roots.place_of(entry.device, &entry.root));
                    *place = now.unwrap_or_else(|| place.clone());
                }
                Ok(true)
            }
            Renamed::Unsure => self.rebuild(store),
            Renamed::Over => {
                tracing::warn!("a directory of the store was moved away: from now on the table is polled");
                (self.events, self.known) = (None, None);
                Ok(false)
            }
        }
    }

    /// Lists all mounts of the namespace. Events that come meanwhile are seen by the next call.
    fn rebuild(&mut self, store: BorrowedFd<'_>) -> Outcome<bool> {
        self.known = None;
        let mut roots = self.store_roots(store)?;
        let ids = view::list_below(LISTMOUNT_ROOT)?;
        let mut entries = Vec::new();
        for id in ids {
            entries.extend(View::Kernel.entry(id)?);
        }
        let covers: BTreeMap<u64, Cover> =
            entries.iter().filter_map(|entry| Some((entry.id, roots.cover_of(entry)?))).collect();
        roots.covers = covers.values().cloned().collect();
        let shows = |entry: &MountEntry| Some((entry.id, roots.place_of(entry.device, &entry.root)?));
        let shown = entries.iter().filter_map(shows).collect();
        self.known = Some(Known { roots, shown, covers });
        Ok(true)
    }
}

impl Events {
    fn watch(store: &StoreDirs) -> Outcome<Events> {
        Ok(Events { mounts: MountEvents::watch()?, renames: StoreRenames::watch(store)? })
    }
}

/// The store's part of a table read afresh.
pub fn seen_afresh(store: BorrowedFd<'_>) -> Outcome<Seen> {
    seen_in(&View::table()?, store)
}

/// The store's part of a table; of a view that is none, its roots alone.
pub(super) fn seen_in(view: &View, store: BorrowedFd<'_>) -> Outcome<Seen> {
    let mut roots = view.store_roots(store)?;
    let View::Table(entries) = view else { return Ok(Seen { roots, mounts: Vec::new() }) };
    roots.covers = entries.values().filter_map(|entry| roots.cover_of(entry)).collect();
    let place = |entry: &MountEntry| Some((entry.clone(), roots.place_of(entry.device, &entry.root)?));
    let mounts = entries.values().filter_map(place).collect();
    Ok(Seen { roots, mounts })
}

impl StoreRoots {
    /// The cover that a mount is, when its mount point is an entry of `copies/`.
    fn cover_of(&self, entry: &MountEntry) -> Option<Cover> {
        let name = places::below(&self.copies_path, &entry.mount_point)?;
        let direct = !name.contains(&b'/');
        direct.then(|| Cover { device: entry.device, root: entry.root.clone(), name: name.to_vec() })
    }

    fn same_store(&self, other: &StoreRoots) -> bool {
        (self.device, &self.copies, &self.trash, &self.copies_path)
            == (other.device, &other.copies, &other.trash, &other.copies_path)
    }
}
