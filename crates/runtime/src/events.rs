//! Kubernetes Events, in the form OCM's own recorder writes them.

use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, Resource};

use crate::{Clock, error::Result, write};

/// Writes events in the name of one controller.
#[derive(Clone)]
pub struct EventRecorder {
    client: Client,
    clock: Clock,
    controller: &'static str,
    instance: String,
}

impl std::fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventRecorder").field("instance", &self.instance).finish_non_exhaustive()
    }
}

/// What happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// `Normal` or `Warning`.
    pub type_: &'static str,
    /// The machine-readable reason, which is also the action unless an action is given.
    pub reason: &'static str,
    /// What a person needs to know.
    pub note: String,
}

impl EventRecorder {
    /// A recorder; `controller` is the `reportingController`, `host` tells its instances apart.
    #[must_use]
    pub fn new(client: Client, clock: Clock, controller: &'static str, host: &str) -> Self {
        Self { client, clock, controller, instance: format!("{controller}-{host}") }
    }

    /// Writes an event on `object` into `namespace`.
    ///
    /// # Errors
    /// [`crate::Error::Request`].
    pub async fn record<K>(&self, namespace: &str, object: &K, new: NewEvent) -> Result<()>
    where
        K: Resource<DynamicType = ()>,
    {
        let event = self.event(namespace, object, new);
        write::create(&Api::namespaced(self.client.clone(), namespace), &event).await.map(|_| ())
    }

    /// Writes an event on `object` into `namespace`, with an action of its own and another object that it concerns.
    ///
    /// # Errors
    /// [`crate::Error::Request`].
    pub async fn record_related<K, R>(
        &self,
        namespace: &str,
        object: &K,
        new: NewEvent,
        action: &'static str,
        related: &R,
    ) -> Result<()>
    where
        K: Resource<DynamicType = ()>,
        R: Resource<DynamicType = ()>,
    {
        let event = self.event(namespace, object, new);
        let resource_version = related.meta().resource_version.clone();
        let related = ObjectReference { resource_version, ..related.object_ref(&()) };
        let event = Event { action: Some(action.into()), related: Some(related), ..event };
        write::create(&Api::namespaced(self.client.clone(), namespace), &event).await.map(|_| ())
    }

    fn event<K>(&self, namespace: &str, object: &K, new: NewEvent) -> Event
    where
        K: Resource<DynamicType = ()>,
    {
        let now = self.clock.now();
        let meta = object.meta();
        let name = meta.name.clone().unwrap_or_default();
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}", now.as_nanosecond())),
                namespace: Some(namespace.into()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(now)),
            action: Some(new.reason.into()),
            reason: Some(new.reason.into()),
            note: Some(new.note),
            type_: Some(new.type_.into()),
            reporting_controller: Some(self.controller.into()),
            reporting_instance: Some(self.instance.clone()),
            regarding: Some(ObjectReference {
                api_version: Some(K::api_version(&()).into_owned()),
                kind: Some(K::kind(&()).into_owned()),
                name: Some(name),
                // Also for cluster-scoped objects: it is how OCM's events have it.
                namespace: Some(namespace.into()),
                uid: meta.uid.clone(),
                resource_version: meta.resource_version.clone(),
                ..ObjectReference::default()
            }),
            ..Event::default()
        }
    }
}
