//! Making the store's records agree with the kernel: at the start, before the socket is served, and again on
//! each tick (C15, C16, C40). It undoes what a killed publish left, and unmounts what the kubelet forgot.

use std::collections::BTreeSet;

use super::driver::Driver;
use crate::domain::handle::Handle;
use crate::domain::holds::{Makes, TargetRecord, TargetState};
use crate::domain::mount_table::{Place, TargetView};
use crate::domain::target::TargetPath;
use crate::domain::volume_request::PublishRequest;
use crate::ports::mounts::MountsError;

impl Driver {
    /// Goes through the records and the mounts once. A failure is logged, its record stays, and the next
    /// call tries again; only a mount table that cannot be read is an error, for then nothing is known.
    pub async fn reconcile(&self) -> Result<(), MountsError> {
        let table = self.ports.mounts.table().await?.mounts;
        let handled = table.iter().filter_map(|mount| Some((mount, self.handle_at(&mount.shown.place)?)));
        self.sight.mounted(handled, &self.settings.kubelet_dir);
        let mut mounted = Vec::new();
        for mount in table {
            if mount.shown.at_root {
                mounted.push((TargetPath::from_mount_point(mount.mount_point), mount.shown.place));
            }
        }
        let shown: BTreeSet<(&TargetPath, Handle)> =
            mounted.iter().filter_map(|(target, place)| Some((target, self.handle_at(place)?))).collect();
        for record in self.ports.records.targets() {
            // Nearly all: their mounts are there, and nobody need look again.
            let is_shown = shown.contains(&(&record.target, record.handle.clone()));
            if record.state != TargetState::Held || !is_shown {
                self.reconcile_record(&record).await;
            }
        }
        if self.ports.cluster.is_some() {
            for (target, place) in mounted {
                self.detach_if_forgotten(&target, &place).await;
            }
        }
        Ok(())
    }

    /// A journal entry under a free lock belongs to a publish that was never answered OK.
    async fn reconcile_record(&self, stale: &TargetRecord) {
        let _guard = self.locks.lock(stale.handle.as_str()).await;
        let Some(record) = self.ports.records.target(&stale.target) else { return };
        if record.handle != stale.handle {
            return;
        }
        let path = record.target.as_path().display();
        let outcome = match record.state {
            TargetState::Attaching(makes) => self.undo_journal(&record, makes).await,
            TargetState::Held => self.drop_if_unmounted(&record).await,
        };
        if let Err(why) = outcome {
            tracing::warn!(handle = %record.handle, target_path = %path, why, "target not yet reconciled");
        }
    }

    /// Before a final code, after which no unpublish comes: what an earlier publish at this target left, whose
    /// outcome nobody knew, goes now (C16).
    pub(super) async fn settle_journal(&self, handle: &Handle, target: &TargetPath) -> Result<(), String> {
        let Some(makes) = self.journalled(handle, target) else { return Ok(()) };
        let records = &self.ports.records;
        if let Some(record) = records.target(target) {
            self.undo_journal(&record, makes).await?;
        }
        if records.target(target).is_some() {
            Err("the journal could not be cleared".to_owned())
        } else {
            Ok(())
        }
    }

    /// After a publish that ended in a bug of the driver: takes back what the journal says it made. True where nothing of it
    /// is left.
    pub async fn take_back(&self, request: &PublishRequest) -> bool {
        let handle = Handle::parse(&request.volume_id);
        let target = TargetPath::parse_for_publish(&request.target_path, &self.settings.kubelet_dir);
        // Nothing is made for what is none.
        let (Ok(handle), Ok(target)) = (handle, target) else { return true };
        let _guard = self.locks.lock(handle.as_str()).await;
        if let Err(why) = self.settle_journal(&handle, &target).await {
            tracing::error!(%handle, why, "a publish that ended in a bug could not be taken back");
            return false;
        }
        self.ports.mounts.look(&target).await.is_ok_and(|view| !view.is_there())
    }

    /// What the journal says was made for this target, if it has an entry of it for the handle.
    pub(super) fn journalled(&self, handle: &Handle, target: &TargetPath) -> Option<Makes> {
        let record = self.ports.records.target(target).filter(|record| &record.handle == handle)?;
        match record.state {
            TargetState::Attaching(makes) => Some(makes),
            TargetState::Held => None,
        }
    }

    async fn undo_journal(&self, record: &TargetRecord, makes: Makes) -> Result<(), String> {
        let TargetRecord { target, handle, .. } = record;
        tracing::info!(%handle, target_path = %target.as_path().display(), "undoing a publish that never ended");
        let view = self.ports.mounts.look(target).await.map_err(|error| error.to_string())?;
        let cleared = self.clear_target(target, &view, handle.as_str(), makes.target).await;
        cleared.map_err(|error| error.to_string())?;
        if makes.copy {
            self.unmake_unused(handle).await?;
        }
        // Last: killed before, the next start finds the entry again and ends what is left.
        self.forget_target(target, handle.as_str()).await;
        Ok(())
    }

    /// Removes a new copy that is still empty and that nobody shows.
    async fn unmake_unused(&self, handle: &Handle) -> Result<(), String> {
        let table = self.ports.mounts.table().await.map_err(|error| error.to_string())?;
        if table.is_in_use(handle, &self.ports.records.trashed(handle)) {
            return Ok(());
        }
        let copies = &self.ports.copies;
        if let Some(identity) = copies.find(handle).await.map_err(|error| error.to_string())? {
            copies.unmake(handle, identity).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    pub(super) async fn drop_if_unmounted(&self, record: &TargetRecord) -> Result<(), String> {
        let view = self.ports.mounts.look(&record.target).await.map_err(|error| error.to_string())?;
        if view.any_shown().is_some() {
            return Ok(());
        }
        // A process that was killed after it had unmounted what the kubelet forgot left the directory: no unpublish will
        // come for that either. After a reboot the kubelet still knows its volumes.
        if self.ports.cluster.is_some() && self.is_forgotten(&record.target).await? {
            let (target, key) = (&record.target, record.handle.as_str());
            let cleared = self.clear_target(target, &view, key, true).await;
            cleared.map_err(|error| error.to_string())?;
        }
        self.ports.records.drop_target(&record.target).await.map_err(|error| error.to_string())
    }

    /// Whether the target is a pod's and the kubelet has removed its own note beside it.
    async fn is_forgotten(&self, target: &TargetPath) -> Result<bool, String> {
        if target.pod_uid(&self.settings.kubelet_dir).is_none() {
            return Ok(false);
        }
        self.ports.mounts.is_forgotten(target).await.map_err(|error| error.to_string())
    }

    /// No unpublish will ever come for a target whose volume the kubelet has forgotten (C16).
    async fn detach_if_forgotten(&self, target: &TargetPath, place: &Place) {
        let Some(handle) = self.handle_at(place) else { return };
        let _guard = self.locks.lock(handle.as_str()).await;
        let path = target.as_path().display();
        let outcome = match self.is_forgotten(target).await {
            Ok(false) => return,
            Ok(true) => self.unpublish_forgotten(target, &handle).await,
            Err(why) => Err(why),
        };
        match outcome {
            Ok(()) => {
                tracing::warn!(%handle, target_path = %path, "unmounted: the kubelet has forgotten this volume")
            }
            Err(why) => tracing::warn!(%handle, target_path = %path, why, "forgotten target not unmounted"),
        }
    }

    async fn unpublish_forgotten(&self, target: &TargetPath, handle: &Handle) -> Result<(), String> {
        let view = self.ports.mounts.look(target).await.map_err(|error| error.to_string())?;
        match &view {
            TargetView::Mounted(_) => {
                let done = self.unpublish_locked(target, &view, handle.as_str(), true).await;
                done.map_err(|error| error.to_string())
            }
            TargetView::Absent | TargetView::Directory { .. } | TargetView::NotADirectory => Ok(()),
        }
    }

    pub(super) fn handle_at(&self, place: &Place) -> Option<Handle> {
        match place {
            Place::Copy(handle) => Some(handle.clone()),
            Place::Trash(id) => {
                let records = self.ports.records.trash_records();
                records.into_iter().find(|(kept, _)| kept == id).map(|(_, handle)| handle)
            }
        }
    }
}
