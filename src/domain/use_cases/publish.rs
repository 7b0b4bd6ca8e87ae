//! NodePublishVolume: lock, look, decide, act, look again (C10–C16).

use super::driver::Driver;
use crate::domain::handle::Handle;
use crate::domain::holds::{Holds, Makes, TargetRecord, TargetState, pod_at};
use crate::domain::mount_table::{FileIdentity, TargetView};
use crate::domain::pod::Pod;
use crate::domain::publish::{Decision, Observed, decide_publish};
use crate::domain::refusal::{FailedStep, PublishError, Refusal};
use crate::domain::target::TargetPath;
use crate::domain::volume_request::{PublishRequest, VolumeAsk};
use crate::ports::copies::CopiesError;
use crate::ports::mounts::MountsError;
use crate::ports::records::RecordsError;

/// A publish past its checks: who, what, where.
struct Admitted<'a> {
    handle: &'a Handle,
    pod: &'a Pod,
    target: &'a TargetPath,
    ask: VolumeAsk,
    target_was_there: bool,
}

/// What a publish has made so far, and takes back if it fails.
#[derive(Default)]
struct Made {
    journal: bool,
    copy: Option<FileIdentity>,
    target: bool,
    mount: bool,
}

/// Why a step failed, and whether anybody knows what it did.
enum StepError {
    Failed(FailedStep),
    Unknown(String),
}

impl Driver {
    /// Publishes the copy at the target, or says why not. Tells every refusal.
    pub async fn publish(&self, request: &PublishRequest) -> Result<(), PublishError> {
        let answer = self.publish_silently(request).await;
        if let Err(PublishError::Refused { refusal, .. }) = &answer {
            let kubelet_dir = &self.settings.kubelet_dir;
            let target = TargetPath::parse(&request.target_path, kubelet_dir).ok();
            let pod = match target {
                Some(target) => Pod::of_request(&request.pod, &target, kubelet_dir).reference(),
                None => request.pod.reference(),
            };
            self.tell(refusal, &request.volume_id, pod);
        }
        answer
    }

    async fn publish_silently(&self, request: &PublishRequest) -> Result<(), PublishError> {
        let refuse = |refusal| Err(PublishError::refused(refusal));
        let handle = match Handle::parse(&request.volume_id) {
            Ok(handle) => handle,
            Err(error) => return refuse(Refusal::Handle(error)),
        };
        let kubelet_dir = &self.settings.kubelet_dir;
        let target = match TargetPath::parse_for_publish(&request.target_path, kubelet_dir) {
            Ok(target) => target,
            Err(error) => return refuse(Refusal::Target(error)),
        };
        let pod = Pod::of_request(&request.pod, &target, kubelet_dir);
        let _guard = self.locks.lock(handle.as_str()).await;
        let answer = self.publish_locked(request, &handle, &pod, &target).await;
        match answer {
            Err(PublishError::Refused { target_was_there: false, .. }) => {
                let settled = self.settle_journal(&handle, &target).await;
                settled.map_err(|why| PublishError::OutcomeUnknown { why }).and(answer)
            }
            Ok(())
            | Err(
                PublishError::Refused { target_was_there: true, .. } | PublishError::OutcomeUnknown { .. },
            ) => answer,
        }
    }

    async fn publish_locked(
        &self,
        request: &PublishRequest,
        handle: &Handle,
        pod: &Pod,
        target: &TargetPath,
    ) -> Result<(), PublishError> {
        let view = match self.ports.mounts.look(target).await {
            Ok(view) => view,
            Err(error) => return Err(look_failed(&error)),
        };
        match self.decide(request, handle, pod, target, &view).await? {
            Decision::AlreadyPublished => {
                self.epochs.advance(handle);
                self.already_published(request, handle, pod, target, &view).await
            }
            Decision::Refuse(refusal) => {
                Err(PublishError::Refused { refusal, target_was_there: view.is_there() })
            }
            Decision::Publish(ask) => {
                self.epochs.advance(handle);
                let admitted = Admitted { handle, pod, target, ask, target_was_there: view.is_there() };
                let done = self.publish_admitted(&admitted).await;
                // Whoever looked for copies that nobody holds meanwhile saw this one between two states (C22).
                self.epochs.advance(handle);
                done?;
                self.sight.found(handle);
                Ok(())
            }
        }
    }

    async fn decide(
        &self,
        request: &PublishRequest,
        handle: &Handle,
        pod: &Pod,
        target: &TargetPath,
        view: &TargetView,
    ) -> Result<Decision, PublishError> {
        let records = &self.ports.records;
        let trashed = records.trashed(handle);
        let showing = match self.ports.mounts.showing(handle, &trashed).await {
            Ok(showing) => showing,
            Err(error) => {
                let step = FailedStep::AskForHolders { why: error.to_string() };
                let refusal = Refusal::Failed(step);
                return Err(PublishError::Refused { refusal, target_was_there: view.is_there() });
            }
        };
        let kubelet_dir = &self.settings.kubelet_dir;
        let holds = Holds::sort(&showing, kubelet_dir, |target| records.target(target));
        self.drop_stale_records(handle, &holds, target).await;
        let record = records.target(target).filter(|record| &record.handle == handle);
        let pod_at_target = pod_at(target.clone(), kubelet_dir, |target| records.target(target));
        let decision = decide_publish(&Observed {
            handle,
            pod,
            pod_at_target: &pod_at_target,
            view,
            trashed: &trashed,
            record: record.as_ref(),
            holds: &holds,
            readonly: request.readonly,
            ask: &request.check(),
        });
        if matches!(decision, Decision::Publish(_)) && !holds.leftovers.is_empty() {
            let paths: Vec<_> = holds.leftovers.iter().map(|path| path.as_path().display()).collect();
            tracing::warn!(%handle, ?paths, "mounts of a pod that has ended still show this copy");
        }
        Ok(decision)
    }

    /// Holds whose mounts are gone are stale (C15). The requested target's own record is left to the caller.
    async fn drop_stale_records(&self, handle: &Handle, holds: &Holds, requested: &TargetPath) {
        for record in self.ports.records.targets_of(handle) {
            let is_live = holds.holders.iter().any(|holder| holder.target == record.target);
            if is_live || &record.target == requested {
                continue;
            }
            tracing::info!(%handle, target_path = %record.target.as_path().display(), "stale hold dropped");
            // With what a start may have left of it: without its record nobody would look there again.
            if let Err(why) = self.drop_if_unmounted(&record).await {
                tracing::warn!(%handle, why, "stale hold not dropped from the store");
            }
        }
    }

    /// C11: the mount stays as it is; only what the store knows of it may be completed.
    async fn already_published(
        &self,
        request: &PublishRequest,
        handle: &Handle,
        pod: &Pod,
        target: &TargetPath,
        view: &TargetView,
    ) -> Result<(), PublishError> {
        self.log_difference(request, handle, view);
        let record = self.ports.records.target(target);
        let is_complete = record.as_ref().is_some_and(|record| {
            record.state == TargetState::Held
                && &record.handle == handle
                && (record.pod == pod.name || pod.name.is_none())
        });
        if is_complete {
            return Ok(());
        }
        let readonly = record.as_ref().map_or(request.readonly, |record| record.readonly);
        // Of a mount that no record calls held, nobody knows since when.
        let since = record.and_then(|record| record.since);
        let record =
            TargetRecord { since, ..target_record(handle, pod, target, readonly, TargetState::Held) };
        match self.ports.records.put_target(&record).await {
            Ok(()) => Ok(()),
            // A journal entry that stays would let the next start undo a mount that is in use.
            Err(error) => Err(PublishError::OutcomeUnknown { why: error.to_string() }),
        }
    }

    fn log_difference(&self, request: &PublishRequest, handle: &Handle, view: &TargetView) {
        let flags = match view {
            TargetView::Mounted(stack) => stack.layers.last().map(|layer| layer.flags),
            TargetView::Absent | TargetView::Directory { .. } | TargetView::NotADirectory => None,
        };
        match (request.check(), flags) {
            (Ok(ask), Some(flags)) if ask.options.are_met_by(&flags) => {}
            (Ok(_), _) => {
                tracing::warn!(%handle, "published with other mount flags; they stay until the pod is created anew")
            }
            (Err(error), _) => {
                tracing::warn!(%handle, %error, "published already; the request would now be refused")
            }
        }
    }

    async fn publish_admitted(&self, admitted: &Admitted<'_>) -> Result<(), PublishError> {
        let mut made = Made::default();
        let error = match self.act(admitted, &mut made).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let step = match error {
            StepError::Failed(step) => step,
            // The journal keeps the target: the kubelet's next call or the next start settles it.
            StepError::Unknown(why) => return Err(PublishError::OutcomeUnknown { why }),
        };
        match self.undo(admitted, &made).await {
            Ok(()) => {
                let target_was_there = admitted.target_was_there;
                Err(PublishError::Refused { refusal: Refusal::Failed(step), target_was_there })
            }
            Err(undo) => {
                tracing::error!(handle = %admitted.handle, %step, undo, "a failed publish could not be undone");
                Err(PublishError::OutcomeUnknown { why: format!("{step}; undoing it: {undo}") })
            }
        }
    }

    /// The steps of C10 and C16 in their order. Nothing is OK before the check.
    async fn act(&self, admitted: &Admitted<'_>, made: &mut Made) -> Result<(), StepError> {
        let Admitted { handle, pod, target, ask, target_was_there } = admitted;
        let ports = &self.ports;
        // Half a copy has the name until it has gone (C23).
        let finished = self.finish_condemned(handle).await;
        finished.map_err(|why| {
            let why = format!("what is left of a deleted copy is still in its place: {why}");
            StepError::Failed(FailedStep::MakeCopy { why })
        })?;
        let found = ports.copies.find(handle).await.map_err(copy_failed)?;
        let journalled = self.journalled(handle, target);
        let earlier = journalled.unwrap_or_default();
        let makes =
            Makes { copy: found.is_none() || earlier.copy, target: !target_was_there || earlier.target };
        let journal = target_record(handle, pod, target, ask.readonly, TargetState::Attaching(makes));
        let written = ports.records.put_target(&journal).await;
        // Also a write that fails may have left its record; not so where the store takes no writes.
        made.journal = !matches!(written, Err(RecordsError::ReadOnly(_))) || journalled.is_some();
        written.map_err(journal_failed)?;
        let ensured = ports.copies.ensure(handle).await.inspect_err(|error| self.make_room_after(error));
        let copy = ensured.map_err(copy_failed)?;
        made.copy = (copy.made || earlier.copy).then_some(copy.identity);
        if let Some(group) = ask.group {
            ports.copies.set_group(handle, group).await.map_err(group_failed)?;
        }
        if !target_was_there {
            ports.mounts.make_target(target).await.map_err(target_failed)?;
            made.target = true;
        }
        match ports.mounts.attach(handle, copy.identity, target, &ask.options).await {
            Ok(()) => made.mount = true,
            Err(MountsError::Unknown(failure)) => return Err(StepError::Unknown(failure.to_string())),
            Err(error) => return Err(StepError::Failed(FailedStep::Attach { why: error.to_string() })),
        }
        self.check(admitted, copy.identity).await?;
        let held = TargetRecord {
            since: Some(ports.clock.wall()),
            ..target_record(handle, pod, target, ask.readonly, TargetState::Held)
        };
        ports.records.put_target(&held).await.map_err(journal_failed)
    }

    /// The target is a mount root with the copy's identity, and its flags are as asked.
    async fn check(&self, admitted: &Admitted<'_>, copy: FileIdentity) -> Result<(), StepError> {
        let view = match self.ports.mounts.look(admitted.target).await {
            Ok(view) => view,
            Err(error) => {
                return Err(StepError::Failed(FailedStep::LookAtTarget { why: error.to_string() }));
            }
        };
        let TargetView::Mounted(stack) = &view else {
            return Err(StepError::Failed(FailedStep::CheckCopy));
        };
        let shows_root = view.visible().is_some_and(|shown| shown.at_root && !shown.deleted);
        if stack.visible != copy || !shows_root {
            return Err(StepError::Failed(FailedStep::CheckCopy));
        }
        let met = stack.layers.last().is_some_and(|layer| admitted.ask.options.are_met_by(&layer.flags));
        if met { Ok(()) } else { Err(StepError::Failed(FailedStep::CheckFlags)) }
    }

    /// Takes back what was made, the latest first; the journal entry goes only when all else has gone.
    async fn undo(&self, admitted: &Admitted<'_>, made: &Made) -> Result<(), String> {
        let Admitted { handle, target, .. } = admitted;
        if made.mount {
            self.ports.mounts.detach(target).await.map_err(|error| error.to_string())?;
        }
        if made.target {
            self.ports.mounts.remove_target(target).await.map_err(|error| error.to_string())?;
        }
        if let Some(identity) = made.copy {
            self.ports.copies.unmake(handle, identity).await.map_err(|error| error.to_string())?;
        }
        if made.journal {
            self.ports.records.drop_target(target).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn target_record(
    handle: &Handle,
    pod: &Pod,
    target: &TargetPath,
    readonly: bool,
    state: TargetState,
) -> TargetRecord {
    TargetRecord {
        target: target.clone(),
        handle: handle.clone(),
        uid: pod.uid.clone(),
        pod: pod.name.clone(),
        readonly,
        state,
        since: None,
    }
}

/// A target that cannot be looked at may show this pod's copy, so no final code is answered for it (C11).
fn look_failed(error: &MountsError) -> PublishError {
    let step = FailedStep::LookAtTarget { why: error.to_string() };
    PublishError::Refused { refusal: Refusal::Failed(step), target_was_there: true }
}

fn copy_failed(error: CopiesError) -> StepError {
    step_failed(error, |why| FailedStep::MakeCopy { why })
}

fn group_failed(error: CopiesError) -> StepError {
    step_failed(error, |why| FailedStep::SetGroup { why })
}

fn step_failed(error: CopiesError, step: impl FnOnce(String) -> FailedStep) -> StepError {
    match error {
        CopiesError::Unknown(failure) => StepError::Unknown(failure.to_string()),
        CopiesError::NoSpace(_)
        | CopiesError::Missing(_)
        | CopiesError::NotADirectory(_)
        | CopiesError::MountPoint(_)
        | CopiesError::Denied(_)
        | CopiesError::OtherMount(_)
        | CopiesError::Io(_) => StepError::Failed(step(error.to_string())),
    }
}

fn target_failed(error: MountsError) -> StepError {
    match error {
        MountsError::Unknown(failure) => StepError::Unknown(failure.to_string()),
        MountsError::Busy(_)
        | MountsError::Missing(_)
        | MountsError::Occupied(_)
        | MountsError::Exhausted(_)
        | MountsError::Denied(_)
        | MountsError::Unsupported(_)
        | MountsError::Io(_) => StepError::Failed(FailedStep::MakeTarget { why: error.to_string() }),
    }
}

fn journal_failed(error: RecordsError) -> StepError {
    match error {
        RecordsError::Unknown(failure) => StepError::Unknown(failure.to_string()),
        RecordsError::Full(_)
        | RecordsError::TooLarge(_)
        | RecordsError::ReadOnly(_)
        | RecordsError::Io(_) => StepError::Failed(FailedStep::WriteJournal { why: error.to_string() }),
    }
}
