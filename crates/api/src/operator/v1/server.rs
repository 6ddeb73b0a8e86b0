//! Settings for the hub's gRPC server.

use k8s_openapi::ByteString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FeatureGate;

/// Settings for the gRPC server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerConfiguration {
    /// Its image; the registration image when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_spec: Option<String>,
    /// Its feature gates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
    /// How it is reached from outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints_exposure: Vec<EndpointExposure>,
}

/// A way for agents or others to reach the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["protocol"]))]
pub struct EndpointExposure {
    /// What the endpoint is for, `agentToHub` or `consumer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<String>,
    /// Its protocol.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = "grpc"))]
    pub protocol: EndpointProtocol,
    /// The endpoint, with protocol `grpc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc: Option<Endpoint>,
    /// The endpoint, with protocol `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub https: Option<Endpoint>,
}

string_enum! {
    /// Protocols of endpoints.
    pub enum EndpointProtocol {
        /// gRPC.
        #[default]
        Grpc = "grpc",
        /// HTTPS.
        Https = "https",
    }
}

/// An endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["type"]))]
pub struct Endpoint {
    /// How it is made.
    #[serde(rename = "type", default)]
    #[schemars(extend("x-ocm-default" = "hostname"))]
    pub type_: EndpointExposureType,
    /// Settings for type `hostname`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<HostnameConfig>,
    /// Settings for type `loadBalancer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancerConfig>,
    /// Settings for type `route`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteConfig>,
}

string_enum! {
    /// How an endpoint is made.
    pub enum EndpointExposureType {
        /// By the user, under a name that is given here.
        #[default]
        Hostname = "hostname",
        /// With a Service of type LoadBalancer.
        LoadBalancer = "loadBalancer",
        /// With an OpenShift route.
        Route = "route",
    }
}

/// An endpoint that the user made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostnameConfig {
    /// Its host name.
    pub host: String,
    /// Certificates by which it is trusted, PEM; the hub's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::bytes")]
    pub ca_bundle: Option<ByteString>,
}

/// An endpoint through a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerConfig {
    /// Its host name; the load balancer's own address when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Certificates by which it is trusted, PEM; the hub's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::bytes")]
    pub ca_bundle: Option<ByteString>,
}

/// An endpoint through a route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteConfig {
    /// Its host name; the route's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Certificates by which it is trusted, PEM; the hub's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::bytes")]
    pub ca_bundle: Option<ByteString>,
}
