//! C26 in the world: which flags a process has, a person who restores and empties, and what must be true of kept copies and
//! of passes with a limit. It sees the store, the ports and the answers, never the driver's insides.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use per_node::adapters::memory::Node;
use per_node::domain::handle::Handle;
use per_node::domain::kept::BYTES_LEFT_PERCENT_MIN;
use per_node::domain::trash::TrashId;
use per_node::domain::use_cases::driver::Brakes;

use crate::chance::Chance;
use crate::invariants::{Violation, violated};
use crate::plugin::DRIVER_NAME;
use crate::simulation::{BEGIN, Simulation};
use crate::world::Act;

/// Makes the chance of the flags another one than that of the world, so that a world without them is the same as before there
/// were any. With this number the seeds of `regressions.txt` that are older than the flags have none.
const OF_THE_FLAGS: u64 = 0x0b5e_55ed_c7f3;

/// What a copy in the trash has in it.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A copy that has to stay restorable.
#[derive(Debug, Clone)]
pub struct Kept {
    pub id: TrashId,
    pub handle: Handle,
    pub files: Files,
    /// Uptime when its removal began, or a little before.
    pub at: Duration,
    /// The step in which it came into the trash.
    pub step: u64,
}

/// What is remembered of kept copies and of limits.
#[derive(Debug, Default)]
pub struct BrakesLedger {
    /// By their inodes.
    kept: BTreeMap<u64, Kept>,
    /// The last steps after which the store was short of space, and a process ran that keeps nothing.
    low: Option<u64>,
    unkept: Option<u64>,
    /// How many kept copies went for an ENOSPC that no shortage explains.
    gone_for_enospc: u32,
    /// Entries that a person wanted emptied.
    emptied: BTreeSet<TrashId>,
    /// Uptime when the latest pass of the sweep began, and when the one did that was under way before this step.
    pass_began: Duration,
    pass_began_before: Duration,
    /// A pass that has ended had removed too much.
    broken: Option<String>,
    /// What a person let through, and in which step.
    confirmed: BTreeMap<Handle, u64>,
}

impl BrakesLedger {
    pub fn begin_step(&mut self) {
        self.pass_began_before = self.pass_began;
    }

    pub fn begin_pass(&mut self, uptime: Duration) {
        self.pass_began = uptime;
    }

    pub fn confirm(&mut self, copies: Vec<Handle>, step: u64) {
        self.confirmed = copies.into_iter().map(|handle| (handle, step)).collect();
    }

    /// Another process knows of no confirmation.
    pub fn forget_process(&mut self) {
        self.confirmed.clear();
    }
}

/// The flags of a world's processes.
pub fn draw(seed: u64) -> Brakes {
    let mut chance = Chance::new(seed ^ OF_THE_FLAGS);
    let trash_for = [None, None, Some(Duration::from_secs(601)), Some(Duration::from_secs(2400))];
    let sweep_limit = [None, None, Some(0), Some(1)];
    Brakes { trash_for: chance.pick(&trash_for).flatten(), sweep_limit: chance.pick(&sweep_limit).flatten() }
}

/// What happens in worlds with flags alone, beside all else.
pub const ACTS: [(u32, Act); 3] =
    [(12, Simulation::restore_something), (2, Simulation::empty_something), (4, Simulation::toggle_full)];

impl Simulation {
    /// An operator may have changed the flags when a process starts.
    pub fn flags_of_a_start(&mut self) -> Brakes {
        let wanted = self.options.brakes;
        let is_off = wanted.trash_for.is_some() && self.options.flags_change && self.chance.in_thousand(150);
        let trash_for = wanted.trash_for.filter(|_| !is_off);
        Brakes { trash_for, ..wanted }
    }

    /// A person restores what is kept, by entry or by handle, whether or not that can be.
    pub fn restore_something(&mut self) {
        let Some((id, handle)) = self.some_kept() else { return };
        // Most people have created the volume again before.
        let (name, is_there) = (handle.to_string(), self.chance.in_thousand(600));
        if is_there && !self.api.volume_names().contains(&name) {
            self.note(|| format!("volume {name} is created again"));
            self.api.create_volume(&name, DRIVER_NAME, &handle);
        }
        let by_handle = self.chance.in_thousand(300);
        let word = if by_handle { handle.to_string() } else { id.to_string() };
        if let Some(plugin) = self.plugin.as_ref().filter(|plugin| plugin.is_serving()) {
            self.note(|| format!("a person restores {word}"));
            plugin.restore(word, &mut self.executor);
        }
    }

    pub fn empty_something(&mut self) {
        let Some((id, _)) = self.some_kept() else { return };
        if let Some(plugin) = self.plugin.as_ref().filter(|plugin| plugin.is_serving()) {
            self.ledger.lock().unwrap().brakes.emptied.insert(id);
            self.note(|| format!("a person empties {id}"));
            plugin.empty(id.to_string(), &mut self.executor);
        }
    }

    fn some_kept(&mut self) -> Option<(TrashId, Handle)> {
        let handles = self.node.trash_records_on_disk();
        let kept: Vec<_> = self.node.kept_on_disk().into_keys().collect();
        let id = self.chance.pick(&kept)?;
        Some((id, handles.get(&id)?.clone()))
    }
}

/// All of them, after a step and before it is forgotten which copies there were before it.
pub fn check(simulation: &Simulation) -> Result<(), Violation> {
    note_the_world(simulation);
    c26_what_is_removed_is_kept(simulation)?;
    c26_what_is_kept_stays_whole_for_its_time(simulation)?;
    c26_no_pass_removes_more_than_the_limit(simulation)
}

fn note_the_world(simulation: &Simulation) {
    let (available, total) = simulation.node.space();
    let keeps = simulation.plugin.as_ref().is_none_or(|plugin| plugin.brakes.trash_for.is_some());
    let mut ledger = simulation.ledger.lock().unwrap();
    let step = ledger.step;
    if available * 100 < total * BYTES_LEFT_PERCENT_MIN {
        ledger.brakes.low = Some(step);
    }
    if !keeps {
        ledger.brakes.unkept = Some(step);
    }
}

/// Whatever a process that keeps copies moves into the trash is kept there, but half a copy.
fn c26_what_is_removed_is_kept(simulation: &Simulation) -> Result<(), Violation> {
    let Some(plugin) = simulation.plugin.as_ref().filter(|plugin| plugin.brakes.trash_for.is_some()) else {
        return Ok(());
    };
    let (trash, on_record) = (simulation.node.trash_files(), simulation.node.kept_on_disk());
    let mut ledger = simulation.ledger.lock().unwrap();
    let step = ledger.step;
    for (name, identity) in &simulation.copies {
        let Ok(handle) = Handle::parse(name) else { continue };
        let Some((id, (_, files))) = trash.iter().find(|(_, (inode, _))| *inode == identity.inode) else {
            continue;
        };
        if simulation.condemned.contains_key(&handle) {
            continue;
        }
        let Some(record) = on_record.get(id) else {
            return violated(format!("{handle} was removed by process {} and is not kept", plugin.number));
        };
        let at = match simulation.options.calendar_jumps {
            false => Duration::from_millis(record.removed.unix_ms - BEGIN.unix_ms),
            true => ledger.brakes.pass_began_before,
        };
        let kept = Kept { id: *id, handle, files: files.clone(), at, step };
        ledger.brakes.kept.insert(identity.inode, kept);
        ledger.seen.kept += 1;
    }
    Ok(())
}

/// A kept copy is there with every byte, is restored, or went for a reason that the contract has.
fn c26_what_is_kept_stays_whole_for_its_time(simulation: &Simulation) -> Result<(), Violation> {
    let trash = simulation.node.trash_files();
    let in_trash: BTreeMap<u64, &Files> = trash.values().map(|(inode, files)| (*inode, files)).collect();
    let copies = simulation.node.copy_identities();
    let mut ledger = simulation.ledger.lock().unwrap();
    let kept = ledger.brakes.kept.clone();
    for (inode, kept) in kept {
        if in_trash.get(&inode).is_some_and(|files| **files == kept.files) {
            continue;
        }
        ledger.brakes.kept.remove(&inode);
        if in_trash.contains_key(&inode) || !copies.values().any(|identity| identity.inode == inode) {
            may_have_gone(simulation, &mut ledger, &kept)?;
            continue;
        }
        if copies.get(kept.handle.as_str()).map(|identity| identity.inode) != Some(inode) {
            return violated(format!("{} was restored as another's copy", kept.id));
        }
        if !simulation.polled.starts_with("restore") {
            return violated(format!("{} was restored by nobody", kept.id));
        }
        let step = ledger.step;
        ledger.seen.restored += 1;
        // A proof that was begun before says nothing of it.
        ledger.shown.insert(kept.handle.clone(), step);
        match kept.files.get("data") {
            Some(data) => ledger.contents.insert(kept.handle.clone(), data.clone()),
            None => ledger.contents.remove(&kept.handle),
        };
    }
    Ok(())
}

fn may_have_gone(
    simulation: &Simulation,
    ledger: &mut crate::ledger::Ledger,
    kept: &Kept,
) -> Result<(), Violation> {
    let trash_for = simulation.plugin.as_ref().and_then(|plugin| plugin.brakes.trash_for);
    let since = |step: Option<u64>| step.is_some_and(|step| step >= kept.step);
    let is_over = trash_for.is_some_and(|span| ledger.uptime.saturating_sub(kept.at) >= span);
    if is_over || ledger.brakes.emptied.contains(&kept.id) || since(ledger.brakes.unkept) {
        return Ok(());
    }
    let is_short = since(ledger.brakes.low);
    ledger.seen.emptied_early += u32::from(is_short);
    if is_short {
        return Ok(());
    }
    ledger.brakes.gone_for_enospc += 1;
    if ledger.brakes.gone_for_enospc <= simulation.enospc.load(std::sync::atomic::Ordering::Relaxed) {
        return Ok(());
    }
    violated(format!("{} of {}, kept in step {}, went before its time", kept.id, kept.handle, kept.step))
}

/// The copies that a pass could remove: their inodes by handle. What is empty may be a publish's to take back, and half a copy
/// is on its way out already.
pub fn removable(node: &Node) -> BTreeMap<Handle, u64> {
    let condemned = node.condemned_on_disk();
    let copies = node.copy_identities().into_iter().filter_map(|(name, identity)| {
        let handle = Handle::parse(&name).ok()?;
        let has_files = node.copy(&handle).is_some_and(|files| !files.is_empty());
        (has_files && !condemned.contains_key(&handle)).then_some((handle, identity.inode))
    });
    copies.collect()
}

impl BrakesLedger {
    /// A step of the sweep has ended, which had these before it: no pass removes more than the limit, but what a person
    /// let through.
    pub fn end_pass(&mut self, plan: &Limited, before: &BTreeMap<Handle, u64>, node: &Node) {
        let (now, condemned) = (removable(node), node.condemned_on_disk());
        let is_gone = |handle: &Handle, inode: u64| {
            condemned.contains_key(handle) || !now.values().any(|&there| there == inode)
        };
        let gone: Vec<&Handle> = before
            .iter()
            .filter(|(handle, inode)| is_gone(handle, **inode))
            .map(|(handle, _)| handle)
            .collect();
        let is_confirmed = |handle: &&&Handle| {
            let confirmed = self.confirmed.get(**handle);
            confirmed.is_some_and(|step| plan.shown.get(**handle).is_none_or(|shown| shown <= step))
        };
        let others = gone.iter().filter(|handle| !is_confirmed(handle)).count();
        if gone.len() > plan.limit as usize && others > 0 {
            self.broken = Some(format!("one pass removed {gone:?} with a limit of {}", plan.limit));
        }
    }
}

/// What a step of the sweep is held to.
pub struct Limited {
    pub limit: u32,
    /// The last step after which a mount showed the handle.
    pub shown: BTreeMap<Handle, u64>,
}

fn c26_no_pass_removes_more_than_the_limit(simulation: &Simulation) -> Result<(), Violation> {
    match simulation.ledger.lock().unwrap().brakes.broken.take() {
        Some(what) => violated(what),
        None => Ok(()),
    }
}
