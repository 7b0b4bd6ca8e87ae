//! NodeUnpublishVolume: lock what the request names, look, lock what is shown if that is another, decide, act (C17).

use super::driver::Driver;
use crate::domain::handle::Handle;
use crate::domain::mount_table::TargetView;
use crate::domain::refusal::UnpublishError;
use crate::domain::target::TargetPath;
use crate::domain::unpublish::{UnpublishDecision, decide_unpublish};
use crate::domain::volume_request::UnpublishRequest;

/// How often the target may show another handle than the one whose lock is held.
const LOOKS_MAX: u32 = 5;

impl Driver {
    /// Undoes what a publish did at the target. What was never published there is fine.
    pub async fn unpublish(&self, request: &UnpublishRequest) -> Result<(), UnpublishError> {
        if request.volume_id.is_empty() {
            return Err(UnpublishError::MissingField { field: "volume_id" });
        }
        if request.target_path.is_empty() {
            return Err(UnpublishError::MissingField { field: "target_path" });
        }
        let target = match TargetPath::parse(&request.target_path, &self.settings.kubelet_dir) {
            Ok(target) => target,
            Err(error) => {
                tracing::warn!(%error, "unpublish of a path that nothing can be published at");
                return Ok(());
            }
        };
        // Nearly always the request names what is shown, and one look is enough.
        let mut key = request.volume_id.clone();
        for _ in 0..LOOKS_MAX {
            let _guard = self.locks.lock(&key).await;
            let view = self.look_at(&target).await?;
            let shown = self.lock_key(&view, &request.volume_id);
            if shown == key {
                self.unpublish_locked(&target, &view, &key, true).await?;
                self.want_sweep_of(&key);
                return Ok(());
            }
            key = shown;
        }
        Err(UnpublishError::Unsteady)
    }

    async fn look_at(&self, target: &TargetPath) -> Result<TargetView, UnpublishError> {
        let look = self.ports.mounts.look(target).await;
        look.map_err(|error| UnpublishError::Look { why: error.to_string() })
    }

    /// The handle that the target shows, else the request's volume id, whatever it is.
    fn lock_key(&self, view: &TargetView, volume_id: &str) -> String {
        let shown = view.any_shown().and_then(|shown| self.handle_at(&shown.place));
        shown.map_or_else(|| volume_id.to_owned(), String::from)
    }

    /// Under the lock of `key`. With `with_directory` the target directory goes too. The record goes last: until then a
    /// start knows what is still to be done.
    pub(super) async fn unpublish_locked(
        &self,
        target: &TargetPath,
        view: &TargetView,
        key: &str,
        with_directory: bool,
    ) -> Result<(), UnpublishError> {
        self.clear_target(target, view, key, with_directory).await?;
        self.forget_target(target, key).await;
        Ok(())
    }

    /// Takes away what shows the copy at the target; the record of it stays.
    pub(super) async fn clear_target(
        &self,
        target: &TargetPath,
        view: &TargetView,
        key: &str,
        with_directory: bool,
    ) -> Result<(), UnpublishError> {
        let path = target.as_path().display();
        match decide_unpublish(view, target, &self.settings.kubelet_dir) {
            UnpublishDecision::Nothing => {}
            UnpublishDecision::LeaveAlone(why) => {
                tracing::warn!(volume = key, target_path = %path, ?why, "unpublish leaves what is not the driver's");
            }
            UnpublishDecision::RemoveDirectory if with_directory => self.remove_target(target).await?,
            UnpublishDecision::RemoveDirectory => {}
            UnpublishDecision::Detach => {
                let detached = self.ports.mounts.detach(target).await;
                detached.map_err(|error| UnpublishError::Unmount { why: error.to_string() })?;
                if with_directory {
                    self.remove_target(target).await?;
                }
                tracing::debug!(volume = key, target_path = %path, "unmounted");
            }
        }
        Ok(())
    }

    /// Nothing is published at the target any more.
    pub(super) async fn forget_target(&self, target: &TargetPath, key: &str) {
        if let Err(error) = self.ports.records.drop_target(target).await {
            let path = target.as_path().display();
            tracing::warn!(volume = key, target_path = %path, %error, "record of an unpublished target not dropped");
        }
        self.sight.unmounted(target);
        let Ok(handle) = Handle::parse(key) else { return };
        self.epochs.advance(&handle);
        // What this target showed may have been all that kept it there.
        if !self.ports.records.trashed(&handle).is_empty() || self.condemned(&handle).is_some() {
            self.trash_wanted.raise();
        }
    }

    async fn remove_target(&self, target: &TargetPath) -> Result<(), UnpublishError> {
        let removed = self.ports.mounts.remove_target(target).await;
        removed.map_err(|error| UnpublishError::RemoveTarget { why: error.to_string() })
    }

    /// The last holder of an orphan may have left: a pass decides (C21). Only a call of the kubelet asks for one: what a
    /// reconciliation unmounts, the pass that follows it judges, and one that asked for another would never let it rest.
    fn want_sweep_of(&self, key: &str) {
        let Ok(handle) = Handle::parse(key) else { return };
        if self.ports.cluster.as_ref().is_some_and(|cluster| !cluster.is_named(&handle)) {
            self.sweep_wanted.raise();
        }
    }
}
