//! The main phase: the agent is connected to the hub with its own credentials.

use std::time::Duration;

use jiff::Timestamp;
use ocm_api::{addon::v1alpha1::KubeClientDriver, cluster::v1::ManagedCluster, components, feature_gates};
use ocm_runtime::{
    Cache, Context, Informers, client::Endpoint, error::chain, events::EventRecorder, informer::WatchFilter,
};
use tracing::{info, info_span, warn};

use super::{Agent, AgentError, USER_AGENT, bootstrap::BootstrapChanges, hub_kubeconfig::Connection, hubs::Leave};
use crate::{
    registration::{
        addon::{self, HostClusters},
        certificate::{Certificate, Reporter, Requests},
        hub_acceptance::HubAcceptance,
        hub_ca::HubCa,
        hub_contact::HubContact,
        lease::LeaseRenewal,
        status::{ClaimRules, Status, StatusSettings},
    },
    work,
};

/// How often the expiry of the certificate is checked: machines sleep, clocks jump.
const CLOCK_POLL: Duration = Duration::from_secs(60);

impl Agent {
    /// Ends when the credentials are no longer valid, when the bootstrap kubeconfig has changed, or when another hub is to be
    /// selected.
    pub(super) async fn connected_phase(&self) -> Result<(), AgentError> {
        let changes = BootstrapChanges::from_now(self);
        let (connection, endpoint) = self.credentials.load()?;
        let (phase, leave) = (self.context.child(), Leave::default());
        let started = info_span!("connected", hub = connection.server)
            .in_scope(|| self.work_with(&phase, &endpoint, &connection, &leave));
        if started.is_ok() {
            tokio::select! {
                () = self.context.ended() => {}
                () = changes.next() => {}
                reason = leave.asked() => warn!(reason, "leaving this hub, selecting again"),
                () = self.keep_current(&endpoint, &connection) => {}
            }
        }
        self.credentials.use_until(None);
        phase.stop().await;
        started
    }

    fn work_with(
        &self,
        phase: &Context,
        endpoint: &Endpoint,
        connection: &Connection,
        leave: &Leave,
    ) -> Result<(), AgentError> {
        let hub = Informers::new(endpoint.client(USER_AGENT)?, phase.clone());
        let managed = Informers::new(self.managed.client(USER_AGENT)?, phase.clone());
        let work = self.config.work_settings(&self.names, &connection.server);
        let status = self.status_settings(work.hub_hash.clone());
        let recorder = self.recorder(&hub);
        phase.run(self.certificate(&hub)?, 1);
        if let Some(base) = self.credentials.hub() {
            phase.run(HubCa::new(&hub, &self.management, self.config.hub_secret(), base), 1);
        }
        phase.run(LeaseRenewal::new(phase, &hub, &self.names.cluster), 1);
        if self.config.selects_hub() {
            self.watch_hub(phase, &hub, leave);
        }
        phase.run(Status::new(phase, &hub, &managed, recorder, status), 1);
        if self.config.feature_gates.enabled(feature_gates::ADDON_MANAGEMENT) {
            let hosts = HostClusters { managed, management: self.management.clone() };
            addon::start(phase, &hub, hosts, self.addon_settings(connection)?);
        }
        if self.config.components.work {
            work::start(phase, &hub, &self.managed, work)?;
        }
        info!("connected to the hub");
        Ok(())
    }

    /// Runs the controllers that find out whether the agent must leave the hub.
    fn watch_hub(&self, phase: &Context, hub: &Informers, leave: &Leave) {
        let (cluster, hubs, clock) = (&self.names.cluster, &self.config.hubs, phase.clock());
        phase.run(HubAcceptance::new(hub, cluster, leave.clone()), 1);
        phase.run(HubContact::by_lease(hub.client(), cluster, hubs, clock, leave.clone()), 1);
    }

    /// The controller of the agent's certificate. The kubeconfig in its secret follows the bootstrap kubeconfig, if that can
    /// be read.
    fn certificate(&self, hub: &Informers) -> Result<Certificate, AgentError> {
        let bootstrap = self.credentials.hub();
        let clusters: Cache<ManagedCluster> = hub.all(WatchFilter::named(&self.names.cluster));
        let desired = self.desired_certificate(bootstrap.as_ref())?;
        Ok(Certificate::new(
            Requests::of(hub, &self.names.cluster),
            &self.management,
            desired,
            Reporter::Cluster(clusters),
        ))
    }

    /// Add-ons get the same kubeconfig as the agent itself, or one that differs in the user.
    fn addon_settings(&self, connection: &Connection) -> Result<addon::Settings, AgentError> {
        let bootstrap = self.credentials.hub().map(|base| self.credentials.extended(&base));
        let (driver, connection) = (self.config.addon_driver.clone(), bootstrap.as_ref().unwrap_or(connection));
        Ok(addon::Settings {
            cluster: self.names.cluster.clone(),
            own_secrets: self.config.own_secrets(),
            kubeconfig: match driver {
                KubeClientDriver::Token => connection.render_with_token()?,
                _ => connection.render()?,
            },
            driver,
            certificate_seconds: self.config.certificate_seconds(),
            token_seconds: self.config.addon_token_seconds,
            lease_period: self.config.addon_lease_period,
        })
    }

    fn status_settings(&self, hub_hash: String) -> StatusSettings {
        let gates = &self.config.feature_gates;
        StatusSettings {
            cluster: self.names.cluster.clone(),
            hub_hash,
            period: self.config.cluster_healthcheck_period,
            reports_properties: gates.enabled(feature_gates::CLUSTER_PROPERTY),
            reports_claims: gates.enabled(feature_gates::CLUSTER_CLAIM),
            claims: ClaimRules {
                max_custom: self.config.max_custom_cluster_claims,
                reserved_suffixes: self.config.reserved_cluster_claim_suffixes.clone(),
            },
        }
    }

    fn recorder(&self, hub: &Informers) -> EventRecorder {
        let clock = self.context.clock().clone();
        EventRecorder::new(hub.client().clone(), clock, components::KLUSTERLET_AGENT, &self.config.host)
    }

    /// Reloads every new certificate; returns when the credentials are no longer valid, or for another hub.
    async fn keep_current(&self, endpoint: &Endpoint, connection: &Connection) {
        let mut changes = self.credentials.changes();
        loop {
            match self.credentials.check() {
                Ok(valid) => self.credentials.use_until(Some(valid.until)),
                Err(cause) => return warn!(%cause, "the credentials for the hub are no longer valid, starting over"),
            }
            tokio::select! {
                // The sender lives as long as the agent, so `changed` does not fail.
                _ = changes.changed() => {}
                () = tokio::time::sleep(CLOCK_POLL.min(self.time_left())) => {}
            }
            if self.is_other_connection(connection) {
                return info!("the address or the certificate authorities of the hub have changed, starting over");
            }
            // Also without a change, to retry what failed before.
            self.reload(endpoint).await;
        }
    }

    /// Add-ons get their kubeconfigs when the agent connects.
    fn is_other_connection(&self, connection: &Connection) -> bool {
        let own = Connection::read(&self.credentials.kubeconfig());
        own.is_ok_and(|new| new.server != connection.server || new.ca_data != connection.ca_data)
    }

    /// The time until shortly after the certificate expires.
    fn time_left(&self) -> Duration {
        let until = self.credentials.check().map_or(Timestamp::MIN, |valid| valid.until);
        let left = until.duration_since(self.context.clock().now());
        Duration::try_from(left).unwrap_or_default() + Duration::from_secs(1)
    }

    async fn reload(&self, endpoint: &Endpoint) {
        if self.credentials.check().is_err() {
            return;
        }
        match endpoint.reload().await {
            Ok(true) => info!("reloaded the credentials for the hub"),
            Ok(false) => {}
            Err(error) => {
                warn!(error = %chain(&error), "cannot use the new credentials for the hub, keeping the old ones");
            }
        }
    }
}
