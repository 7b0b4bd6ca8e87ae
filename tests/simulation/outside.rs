//! What happens at the API server: volumes come and go, watches lag and break, etcd is put back, another
//! cluster answers, a person confirms.

use per_node::adapters::memory::Backup;
use per_node::ports::cluster::Cluster;

use crate::plugin::DRIVER_NAME;
use crate::simulation::Simulation;

impl Simulation {
    pub fn create_volume(&mut self) {
        let handle = self.some_handle();
        let is_twin = self.options.twin_volumes && self.chance.in_thousand(300);
        let name = if is_twin { format!("{handle}-twin") } else { handle.to_string() };
        if !self.api.volume_names().contains(&name) {
            self.note(|| format!("volume {name} is created"));
            self.api.create_volume(&name, DRIVER_NAME, &handle);
        }
    }

    pub fn delete_volume(&mut self) {
        let Some(name) = self.chance.pick(&self.api.volume_names()) else { return };
        if self.chance.in_thousand(300) {
            self.note(|| format!("volume {name} terminates"));
            self.api.terminate_volume(&name);
        } else {
            self.note(|| format!("volume {name} is deleted"));
            self.api.delete_volume(&name);
        }
    }

    pub fn step_the_watch(&mut self) {
        let (at_most, is_bookmark) = (1 + self.chance.below(3), self.chance.in_thousand(300));
        let is_repeated = self.chance.in_thousand(400);
        let Some(plugin) = &self.plugin else { return };
        let health = plugin.view.watch_health();
        if !health.synced {
            plugin.view.relist();
        } else if !health.live {
            plugin.view.reopen();
        } else if is_bookmark && is_repeated {
            plugin.view.repeat_bookmark();
        } else if is_bookmark {
            plugin.view.bookmark();
        } else {
            plugin.view.deliver(at_most);
        }
        self.note(|| "the watch goes on".to_owned());
    }

    pub fn lose_the_watch(&mut self) {
        let is_compacted = self.chance.in_thousand(300);
        let Some(plugin) = &self.plugin else { return };
        plugin.view.drop_watch();
        if is_compacted {
            self.api.compact();
        }
        self.note(|| "the watch is lost".to_owned());
    }

    pub fn take_or_restore_backup(&mut self) {
        if !self.options.restores || self.away.is_some() {
            return;
        }
        match self.backup.take() {
            Some(backup) if self.chance.in_thousand(400) => {
                self.note(|| "etcd is put back to its backup".to_owned());
                self.api.restore(&backup);
                // The API servers are stopped for it, for longer than a chain of streams may be interrupted.
                if let Some(plugin) = &self.plugin {
                    plugin.view.break_chain();
                }
                self.ledger.lock().unwrap().seen.restores += 1;
            }
            Some(_) | None => self.backup = Some(self.api.backup()),
        }
    }

    /// The node is moved to another cluster, or back: the process starts anew for it.
    pub fn swap_cluster(&mut self) {
        if !self.options.other_clusters {
            return;
        }
        self.crash();
        match self.away.take() {
            Some(home) => self.come_home(&home),
            None => {
                self.note(|| "another cluster answers".to_owned());
                self.away = Some(self.api.backup());
                for name in self.api.volume_names() {
                    self.api.delete_volume(&name);
                }
                self.api.set_cluster_uid("another");
            }
        }
    }

    pub fn come_home(&mut self, home: &Backup) {
        self.note(|| "the node's own cluster answers".to_owned());
        self.api.restore(home);
        self.api.set_cluster_uid("cluster-1");
    }

    /// A person confirms, but never for a cluster that is not the node's.
    pub fn confirm_what_waits(&mut self) {
        let waits = self.plugin.as_ref().is_some_and(|plugin| plugin.driver.tally().waiting().is_some());
        if waits && self.away.is_none() {
            self.note(|| "a person confirms".to_owned());
            let mut ledger = self.ledger.lock().unwrap();
            ledger.seen.confirmed += 1;
            ledger.confirm_asked = true;
            drop(ledger);
            if let Some(plugin) = &self.plugin {
                plugin.confirm();
            }
        }
    }

    pub fn touch_the_api_server(&mut self) {
        self.api.touch();
    }
}
