//! NodeGetVolumeHealth: what is wrong with a published copy (C49). It changes nothing and takes no lock; what it
//! found counts only while the target shows the same before and after.

use super::driver::Driver;
use crate::domain::handle::Handle;
use crate::domain::health::{Condition, Published, Room, StoreFacts, conditions, published};
use crate::domain::holds::TargetState;
use crate::domain::refusal::HealthError;
use crate::domain::target::TargetPath;
use crate::ports::copies::{CopiesError, Examined};

/// How often the target may change what it shows while its copy is examined.
const LOOKS_MAX: u32 = 4;

impl Driver {
    /// What is wrong with the copy that is published at `publish_path`. Nothing, too, where no path is given or
    /// nothing of the volume is published there: a kubelet also asks for pods whose publish was refused.
    pub async fn health(&self, volume_id: &str, publish_path: &str) -> Result<Vec<Condition>, HealthError> {
        if volume_id.is_empty() {
            return Err(HealthError::MissingField { field: "volume_id" });
        }
        // No publish lets these through, so no pod can hold such a volume, or one at such a path.
        let Ok(handle) = Handle::parse(volume_id) else { return Ok(Vec::new()) };
        let kubelet_dir = &self.settings.kubelet_dir;
        let Ok(target) = TargetPath::parse_for_publish(publish_path, kubelet_dir) else {
            return Ok(Vec::new());
        };
        match self.health_of(&handle, &target).await {
            Err(HealthError::Look { why }) => self.health_unseen(&handle, &target, why).await,
            known => known,
        }
    }

    async fn health_of(&self, handle: &Handle, target: &TargetPath) -> Result<Vec<Condition>, HealthError> {
        let mut before = self.published_at(handle, target).await?;
        for _ in 0..LOOKS_MAX {
            let Some(seen) = before else { return Ok(Vec::new()) };
            let store = self.store_facts(handle).await?;
            // Between the two the pod may have left, and the sweep removed its copy: no loss at all.
            let after = self.published_at(handle, target).await?;
            if after == before {
                return Ok(conditions(&seen, &store));
            }
            before = after;
        }
        Err(HealthError::Unsteady)
    }

    /// A file system that gave up fails the look at every mount that shows it. Where the target is on record and the
    /// store fails as well, the store is what ails it; else nothing is known.
    async fn health_unseen(
        &self,
        handle: &Handle,
        target: &TargetPath,
        why: String,
    ) -> Result<Vec<Condition>, HealthError> {
        if self.is_recorded(handle, target)
            && let Err(why) = self.store_facts(handle).await?
        {
            return Ok(vec![Condition::StoreFailing { why }]);
        }
        Err(HealthError::Look { why })
    }

    async fn published_at(
        &self,
        handle: &Handle,
        target: &TargetPath,
    ) -> Result<Option<Published>, HealthError> {
        let view = self.ports.mounts.look(target).await;
        let view = view.map_err(|error| HealthError::Look { why: error.to_string() })?;
        let trashed = self.ports.records.trashed(handle);
        Ok(published(&view, handle, &trashed, self.is_recorded(handle, target)))
    }

    fn is_recorded(&self, handle: &Handle, target: &TargetPath) -> bool {
        let record = self.ports.records.target(target);
        record.is_some_and(|record| &record.handle == handle && record.state == TargetState::Held)
    }

    /// The facts, or why the store could not tell them.
    async fn store_facts(&self, handle: &Handle) -> Result<Result<StoreFacts, String>, HealthError> {
        match self.ports.copies.examine(handle).await {
            Ok(examined) => Ok(Ok(facts(&examined))),
            Err(CopiesError::Unknown(failure)) => Err(HealthError::Examine { why: failure.to_string() }),
            Err(
                error @ (CopiesError::NoSpace(_)
                | CopiesError::Missing(_)
                | CopiesError::NotADirectory(_)
                | CopiesError::MountPoint(_)
                | CopiesError::Denied(_)
                | CopiesError::OtherMount(_)
                | CopiesError::Io(_)),
            ) => Ok(Err(error.to_string())),
        }
    }
}

fn facts(examined: &Examined) -> StoreFacts {
    let capacity = examined.capacity;
    StoreFacts {
        copy: examined.copy,
        device: examined.store_device,
        read_only: examined.read_only,
        bytes: Room { available: capacity.available_bytes, total: capacity.total_bytes },
        inodes: Room { available: capacity.available_inodes, total: capacity.total_inodes },
    }
}
