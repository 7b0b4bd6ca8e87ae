//! Which calls fail, and how: only as the ports allow. What a port says acted not, did not act.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use per_node::adapters::memory::{ApiServer, ClusterCall, Fault, KernelFault, Node, NodeCall, Plan, errno};
use per_node::ports::cluster::ClusterError;
use per_node::ports::event_sink::EventSinkError;

use crate::chance::Chance;
use crate::options::Options;

/// Tells every gate of the world what goes wrong from now on, from a chance of its own.
pub fn begin(node: &Node, api: &ApiServer, options: &Options, seed: u64, enospc: &Arc<AtomicU32>) {
    let chance = Arc::new(Mutex::new(Chance::new(seed)));
    let (of_node, of_cluster, of_events) = (chance.clone(), chance.clone(), chance);
    let enospc = enospc.clone();
    let (one, two, three) = (options.clone(), options.clone(), options.clone());
    node.gate().plan_with(move |call| {
        let mut chance = of_node.lock().unwrap();
        let fault = node_fault(call, &one, &mut chance);
        let is_about_copies = matches!(call, NodeCall::Ensure | NodeCall::Discard);
        if is_about_copies && fault == Fault::Before(KernelFault::Errno(errno::ENOSPC)) {
            enospc.fetch_add(1, Ordering::Relaxed);
        }
        plan(fault, &one, &mut chance)
    });
    api.cluster_gate().plan_with(move |call| {
        let mut chance = of_cluster.lock().unwrap();
        let fault = hang(two.cluster_hangs, &mut chance);
        let fault = fault.unwrap_or_else(|| cluster_fault(call, &two, &mut chance));
        plan(fault, &two, &mut chance)
    });
    api.event_gate().plan_with(move |_| {
        let mut chance = of_events.lock().unwrap();
        let fault = hang(three.cluster_hangs, &mut chance);
        let fault = fault.unwrap_or_else(|| event_fault(&three, &mut chance));
        plan(fault, &three, &mut chance)
    });
}

/// From now on nothing goes wrong on the node. The API server stays as it is.
pub fn end_on_node(node: &Node) {
    node.gate().smooth();
    node.gate().release_all();
}

/// From now on nothing goes wrong, and what hung goes on.
pub fn end(node: &Node, api: &ApiServer) {
    node.gate().smooth();
    api.cluster_gate().smooth();
    api.event_gate().smooth();
    release(node, api);
}

/// What hangs goes on.
pub fn release(node: &Node, api: &ApiServer) {
    node.gate().release_all();
    api.cluster_gate().release_all();
    api.event_gate().release_all();
}

fn plan<E>(fault: Fault<E>, options: &Options, chance: &mut Chance) -> Plan<E> {
    // Also where calls do not pause some do: whoever goes round for ever must be seen at it.
    let seldom = u32::from(chance.in_thousand(20));
    let mut pauses = || seldom + chance.below(options.pauses_max + 1) as u32;
    Plan { pauses_before: pauses(), fault, pauses_after: pauses() }
}

fn hang<E>(times: u32, chance: &mut Chance) -> Option<Fault<E>> {
    chance.in_thousand(times).then(
        || {
            if chance.in_thousand(500) { Fault::HangBefore } else { Fault::HangAfter }
        },
    )
}

fn node_fault(call: NodeCall, options: &Options, chance: &mut Chance) -> Fault<KernelFault> {
    if let Some(hang) = hang(options.hangs, chance) {
        return hang;
    }
    if !chance.in_thousand(options.node_faults) {
        return Fault::None;
    }
    let before = |no| Fault::Before(KernelFault::Errno(no));
    let after = Fault::After(KernelFault::Errno(errno::EIO));
    let lost = [Fault::Before(KernelFault::Lost), Fault::After(KernelFault::Lost)];
    let [lost_before, lost_after] = lost;
    let (io, faults) = (before(errno::EIO), |faults: &[Fault<KernelFault>]| faults.to_vec());
    let of_call = match call {
        NodeCall::PutSeries if !options.lost_series => return Fault::None,
        NodeCall::PutSeries => faults(&[io, after, lost_before, lost_after]),
        NodeCall::Look
        | NodeCall::Showing
        | NodeCall::Table
        | NodeCall::IsForgotten
        | NodeCall::Find
        | NodeCall::ListCopies
        | NodeCall::ListTrash
        | NodeCall::Usage
        | NodeCall::Capacity
        | NodeCall::Mark
        | NodeCall::Examine => faults(&[io]),
        NodeCall::MakeTarget => faults(&[io, before(errno::ENOSPC), lost_before, lost_after]),
        NodeCall::Attach => faults(&[io, before(errno::ENOSPC), lost_before, lost_after]),
        NodeCall::Detach => faults(&[io, before(errno::EBUSY), after, lost_before, lost_after]),
        NodeCall::Ensure | NodeCall::Discard => {
            faults(&[io, before(errno::ENOSPC), before(errno::EPERM), lost_before, lost_after])
        }
        NodeCall::Restore => faults(&[io, before(errno::EPERM), lost_before, lost_after]),
        NodeCall::ReleaseTrash
        | NodeCall::PutKeeping
        | NodeCall::RemoveTarget
        | NodeCall::Unmake
        | NodeCall::SetGroup
        | NodeCall::Delete
        | NodeCall::DeleteInPlace
        | NodeCall::PutTarget
        | NodeCall::DropTarget
        | NodeCall::ReserveTrash
        | NodeCall::ForgetTrash
        | NodeCall::Settle
        | NodeCall::Condemn
        | NodeCall::Acquit
        | NodeCall::DropSeries
        | NodeCall::PutHistory
        | NodeCall::PutMarker => faults(&[io, after, lost_before, lost_after]),
    };
    chance.pick(&of_call).unwrap_or(Fault::None)
}

fn cluster_fault(_call: ClusterCall, options: &Options, chance: &mut Chance) -> Fault<ClusterError> {
    if !chance.in_thousand(options.cluster_faults) {
        return Fault::None;
    }
    let errors = [
        ClusterError::Unauthorized,
        ClusterError::Forbidden { what: "list persistentvolumes" },
        ClusterError::Gone,
        ClusterError::Throttled { retry_after: Some(Duration::from_secs(5)) },
        ClusterError::Server { status: 500 },
        ClusterError::TimedOut,
        ClusterError::Cut,
    ];
    chance.pick(&errors).map_or(Fault::None, Fault::Before)
}

/// Only what passes by itself: a rejected event ends its series, and its count with it.
fn event_fault(options: &Options, chance: &mut Chance) -> Fault<EventSinkError> {
    if !chance.in_thousand(options.event_faults) {
        return Fault::None;
    }
    let error = EventSinkError::Retry { why: "simulated".to_owned(), retry_after: None };
    if chance.in_thousand(500) { Fault::Before(error) } else { Fault::After(error) }
}
