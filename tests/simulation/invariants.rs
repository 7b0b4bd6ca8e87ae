//! The invariants of the first phase, one function each, asked after every step.

use std::collections::BTreeMap;
use std::path::Path;

use per_node::domain::handle::Handle;
use per_node::domain::health::{Condition, Severity};
use per_node::domain::holds::TargetState;
use per_node::domain::mount_table::{Place, TargetView};
use per_node::domain::pod::Subject;
use per_node::domain::refusal::{FailedStep, HealthError, PublishError, Refusal};
use per_node::ports::cluster::Cluster;

use crate::brakes;
use crate::kubelet::{Call, Pod};
use crate::plugin::{DRIVER_NAME, KUBELET_DIR};
use crate::proofs::was_proven;
use crate::simulation::Simulation;

/// What was broken, in one sentence.
#[derive(Debug, Clone)]
pub struct Violation(pub String);

pub fn violated(what: String) -> Result<(), Violation> {
    Err(Violation(what))
}

/// All invariants that hold after any step.
pub fn check(simulation: &mut Simulation) -> Result<(), Violation> {
    c12_targets_of_one_pod_alone_show_a_copy(simulation)?;
    c12_one_pod_alone_runs_on_a_copy(simulation)?;
    c12_the_target_of_a_published_volume_stays(simulation)?;
    c15_a_running_pod_sees_its_copy(simulation)?;
    c23_no_mount_shows_what_was_removed(simulation)?;
    brakes::check(simulation)?;
    note_what_is_unnamed(simulation);
    c22_a_history_that_went_back_is_a_persons_to_confirm(simulation)?;
    removed_copies_were_unnamed_at_a_proof(simulation)?;
    c32_event_counts_only_grow(simulation)?;
    note_what_is_shown(simulation);
    note_targets_that_went(simulation);
    Ok(())
}

fn note_what_is_shown(simulation: &Simulation) {
    let mut ledger = simulation.ledger.lock().unwrap();
    let step = ledger.step;
    for mount in simulation.node.store_mounts() {
        if let Place::Copy(handle) = mount.shown.place {
            ledger.shown.insert(handle, step);
        }
    }
    if let Some(plugin) = &simulation.plugin {
        for name in simulation.copies.keys() {
            if let Ok(handle) = Handle::parse(name)
                && plugin.view.deletion_was_seen(&handle)
            {
                ledger.deletion_seen.insert(handle, step);
            }
        }
    }
}

/// A target that somebody else removed while a publish was under way was not there for it.
fn note_targets_that_went(simulation: &mut Simulation) {
    let Simulation { kubelet, node, polled, .. } = simulation;
    for (number, call) in &mut kubelet.calls {
        let by_itself = *polled == format!("publish {number}");
        call.was_disturbed |= call.target_was_there && !by_itself && !node.exists(call.of.target());
    }
}

/// At any instant the targets that show a handle's copy are one pod's.
fn c12_targets_of_one_pod_alone_show_a_copy(simulation: &Simulation) -> Result<(), Violation> {
    let mut holders: BTreeMap<Handle, String> = BTreeMap::new();
    for mount in simulation.node.store_mounts() {
        let (Place::Copy(handle), Some(uid)) = (mount.shown.place, uid_of_target(&mount.mount_point)) else {
            continue;
        };
        let first = holders.entry(handle.clone()).or_insert_with(|| uid.clone());
        if *first != uid {
            return violated(format!("targets of {first} and of {uid} show {handle}"));
        }
    }
    Ok(())
}

fn uid_of_target(path: &Path) -> Option<String> {
    let below = path.strip_prefix(KUBELET_DIR).ok()?;
    let names: Vec<&str> = below.iter().filter_map(|name| name.to_str()).collect();
    match names.as_slice() {
        ["pods", uid, "volumes", "kubernetes.io~csi", _, "mount"] => Some((*uid).to_owned()),
        _ => None,
    }
}

/// No two containers run on one handle.
fn c12_one_pod_alone_runs_on_a_copy(simulation: &Simulation) -> Result<(), Violation> {
    let mut running: BTreeMap<&Handle, &Pod> = BTreeMap::new();
    for pod in simulation.kubelet.pods.values().filter(|pod| pod.running) {
        if let Some(other) = running.insert(&pod.handle, pod) {
            return violated(format!("{} and {} run on {}", other.uid, pod.uid, pod.handle));
        }
    }
    Ok(())
}

/// Once published, a target directory stays until the kubelet unpublishes or cleans up, over reboots and kills
/// too: a final code where it is missing would let an old kubelet forget the volume for ever.
fn c12_the_target_of_a_published_volume_stays(simulation: &Simulation) -> Result<(), Violation> {
    for pod in simulation.kubelet.pods.values().filter(|pod| pod.published) {
        if !simulation.node.exists(pod.target()) && simulation.node.exists(pod.data()) {
            return violated(format!("the target of {} was removed", pod.uid));
        }
    }
    Ok(())
}

/// A container's mount stays what it was given, with every byte in it: whatever anybody else's publish or
/// unpublish does, the winner's hold survives.
fn c15_a_running_pod_sees_its_copy(simulation: &Simulation) -> Result<(), Violation> {
    for pod in simulation.kubelet.pods.values().filter(|pod| pod.running) {
        let view = simulation.node.view(pod.target());
        let sees = view.visible().is_some_and(|shown| {
            shown.at_root && !shown.deleted && shown.place == Place::Copy(pod.handle.clone())
        });
        if !sees {
            return violated(format!("{} runs and sees {view:?}", pod.uid));
        }
        let is_as_asked =
            simulation.node.flags(pod.target()).map(|flags| flags.read_only) == Some(pod.readonly);
        if !is_as_asked {
            return violated(format!("{} runs on a mount with another readonly", pod.uid));
        }
        let ledger = simulation.ledger.lock().unwrap();
        let (left, found) = (ledger.contents.get(&pod.handle), simulation.node.read(pod.target(), "data"));
        if left != found.as_ref() {
            return violated(format!("{} reads {found:?}, written was {left:?}", pod.uid));
        }
    }
    Ok(())
}

/// C1: what was left there, or nothing where the volume is new; never a half of it (C23).
pub fn a_pod_that_starts_finds_what_was_left(simulation: &Simulation, pod: &Pod) -> Result<(), Violation> {
    let mut ledger = simulation.ledger.lock().unwrap();
    let found = simulation.node.read(pod.target(), "data");
    if found.is_none() && simulation.condemned.contains_key(&pod.handle) {
        ledger.contents.remove(&pod.handle);
    }
    let left = ledger.contents.get(&pod.handle);
    if left == found.as_ref() {
        return Ok(());
    }
    violated(format!("{} starts and finds {found:?}, left was {left:?}", pod.uid))
}

/// Nothing in use is ever renamed or deleted.
fn c23_no_mount_shows_what_was_removed(simulation: &Simulation) -> Result<(), Violation> {
    for mount in simulation.node.store_mounts() {
        let is_removed = mount.shown.deleted || matches!(mount.shown.place, Place::Trash(_));
        if is_removed {
            return violated(format!("{} shows {:?}", mount.mount_point.display(), mount.shown));
        }
    }
    Ok(())
}

/// C16: after a final code no target, no mount, no journal entry, no new empty copy.
pub fn a_final_error_leaves_nothing(
    simulation: &Simulation,
    call: &Call,
    error: &PublishError,
) -> Result<(), Violation> {
    let pod = &call.of;
    let target = pod.target();
    let view = simulation.node.view(&target);
    if view != TargetView::Absent {
        return violated(format!("a final error of {} leaves {view:?} at its target", pod.uid));
    }
    // What a lost write left on the disk alone the process cannot know; the next start settles it.
    let known = simulation.plugin.as_ref().map(|plugin| plugin.records.targets()).unwrap_or_default();
    let journal = known.into_iter().find(|record| {
        record.target.as_path() == target && matches!(record.state, TargetState::Attaching(_))
    });
    if let Some(record) = journal {
        return violated(format!("a final error of {} leaves {record:?}", pod.uid));
    }
    let has_failed = matches!(
        error,
        PublishError::Refused {
            refusal: Refusal::Failed(
                FailedStep::SetGroup { .. } | FailedStep::MakeTarget { .. } | FailedStep::Attach { .. }
            ),
            ..
        }
    );
    let is_uncertain = simulation.ledger.lock().unwrap().uncertain.contains(&pod.handle);
    let left = simulation.node.copy(&pod.handle).is_some_and(|files| files.is_empty());
    if has_failed && !call.copy_was_there && !is_uncertain && left && !was_published(simulation, &pod.handle)
    {
        return violated(format!("a final error of {} leaves a new empty copy", pod.uid));
    }
    Ok(())
}

/// C16: what a killed publish had mounted and had not yet made a hold is gone before anything is served, where nothing kept
/// the start from undoing it.
pub fn c16_a_start_leaves_no_mount_without_a_hold(simulation: &Simulation) -> Result<(), Violation> {
    let options = &simulation.options;
    let is_hindered = options.node_faults > 0
        || options.hangs > 0
        || options.busy_targets
        || options.read_only_stores
        || options.torn_records;
    if is_hindered {
        return Ok(());
    }
    let records = simulation.node.records_on_disk();
    for mount in simulation.node.store_mounts() {
        let is_held = records
            .iter()
            .any(|record| record.target.as_path() == mount.mount_point && record.state == TargetState::Held);
        if uid_of_target(&mount.mount_point).is_some() && !is_held {
            return violated(format!("a start leaves {} and no hold of it", mount.mount_point.display()));
        }
    }
    Ok(())
}

fn was_published(simulation: &Simulation, handle: &Handle) -> bool {
    simulation.ledger.lock().unwrap().shown.contains_key(handle)
}

/// C12: a kubelet before 1.36.3 would forget a volume that was published before.
pub fn no_final_code_where_the_target_was(call: &Call, error: &PublishError) -> Result<(), Violation> {
    let is_excepted = matches!(
        error,
        PublishError::Refused { refusal: Refusal::Handle(_) | Refusal::ReadonlyDiffers { .. }, .. }
    );
    if call.target_was_there && !call.was_disturbed && !is_excepted {
        return violated(format!("{} had a target and got the final {error}", call.of.uid));
    }
    Ok(())
}

/// C22 (c): what the store has noticed it does not forget by itself, however far the new history comes.
fn c22_a_history_that_went_back_is_a_persons_to_confirm(
    simulation: &mut Simulation,
) -> Result<(), Violation> {
    let now = simulation.node.history_on_disk().is_some_and(|history| history.went_back);
    let before = std::mem::replace(&mut simulation.went_back, now);
    let mut ledger = simulation.ledger.lock().unwrap();
    ledger.seen.went_back += u32::from(now && !before);
    if before && !now && !std::mem::take(&mut ledger.confirm_asked) {
        return violated("that the history went back was forgotten without a person".to_owned());
    }
    Ok(())
}

/// C49: nobody but the driver removes copies here, and it removes none that a target shows.
pub fn c49_no_loss_is_told_where_nothing_is_lost(
    pod: u64,
    answer: &Result<Vec<Condition>, HealthError>,
) -> Result<(), Violation> {
    let is_loss = |condition: &Condition| condition.severity() == Severity::DataLoss;
    match answer {
        Ok(conditions) if conditions.iter().any(is_loss) => {
            violated(format!("pod-{pod} is told of {conditions:?}"))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// C21, C22: a copy that pods have written to goes only on a proof, and is condemned only on one (C23).
fn removed_copies_were_unnamed_at_a_proof(simulation: &mut Simulation) -> Result<(), Violation> {
    let condemned_before = std::mem::replace(&mut simulation.condemned, simulation.node.condemned_on_disk());
    for (handle, mark) in &simulation.condemned {
        if condemned_before.get(handle) != Some(mark) {
            was_proven(simulation, handle)?;
        }
    }
    let now = simulation.node.copy_identities();
    let before = std::mem::replace(&mut simulation.copies, now.clone());
    for (name, identity) in before {
        if now.get(&name) == Some(&identity) {
            continue;
        }
        let Ok(handle) = Handle::parse(&name) else { continue };
        let mut ledger = simulation.ledger.lock().unwrap();
        // A publish may have taken the place of a condemned copy in the same step, and its pod have written.
        let newest = simulation.node.copy(&handle).and_then(|files| files.get("data").cloned());
        let is_newer =
            condemned_before.contains_key(&handle) && newest == ledger.contents.get(&handle).cloned();
        let was_written = !is_newer && ledger.contents.remove(&handle).is_some();
        let is_swept = simulation.node.trash_identities().contains(&identity);
        if !was_written && !is_swept {
            // An empty new copy that a failed publish takes back.
            continue;
        }
        ledger.seen.removed += 1;
        drop(ledger);
        // What was condemned had its proof then.
        if condemned_before.get(&handle).is_none_or(|mark| mark.inode != identity.inode) {
            was_proven(simulation, &handle)?;
        }
    }
    Ok(())
}

/// Who is named in truth, in the cluster that answers.
fn note_what_is_unnamed(simulation: &Simulation) {
    let cluster_uid = simulation.api.cluster_uid().0;
    let named = simulation.api.handles(DRIVER_NAME);
    let mut ledger = simulation.ledger.lock().unwrap();
    let step = ledger.step;
    for name in simulation.copies.keys() {
        if let Ok(handle) = Handle::parse(name)
            && !named.contains(&handle)
        {
            ledger.unnamed.insert((cluster_uid.clone(), handle), step);
        }
    }
}

/// The count of an event never goes back, and never says more than happened.
fn c32_event_counts_only_grow(simulation: &Simulation) -> Result<(), Violation> {
    if simulation.polled != "events" {
        return Ok(());
    }
    let mut ledger = simulation.ledger.lock().unwrap();
    for event in simulation.api.events() {
        let key = (event.subject.uid().to_owned(), event.reason, event.message.clone());
        let happened = ledger.refusals.get(&key).copied();
        // What concerns the node is no refusal (C26).
        let happened =
            if matches!(event.subject, Subject::Pod(_)) { happened.unwrap_or_default() } else { u32::MAX };
        let known = ledger.event_counts.entry(event.name.clone()).or_insert_with(|| (key, 0));
        let may_be_forgotten = simulation.options.lost_series || simulation.options.read_only_stores;
        if event.count < known.1 && !may_be_forgotten {
            return violated(format!("the count of {} went from {} to {}", event.name, known.1, event.count));
        }
        if event.count > happened {
            return violated(format!("{} counts {} of {happened}", event.name, event.count));
        }
        known.1 = known.1.max(event.count);
    }
    Ok(())
}
