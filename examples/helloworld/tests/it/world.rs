//! Hub, managed cluster, and the processes on them.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use ocm_addon::{
    Manifest,
    api::{labels, signers, work::v1::ManifestWork},
    k8s_openapi::{
        ByteString,
        api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
    },
    kube::{
        Api, ResourceExt as _,
        api::PostParams,
        config::{AuthInfo, NamedAuthInfo},
    },
    manifests,
};
use ocm_testing::{ControlPlane, Process, TempDir, client_for, eventually, fixture, write_kubeconfig};
use serde_json::{Value, json};

const NAMESPACE: &str = "open-cluster-management";
const IMAGE: &str = "example.com/helloworld:test";

/// Add-ons on clusters in the version that is stored: nothing converts them here.
pub(crate) const ADDONS: &str = "managedclusteraddons.v1alpha1.addon.open-cluster-management.io";

/// What the hub gives the agents of accepted clusters.
const AGENTS_MAY_ASK: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-agents}
rules: [{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-agents}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: test-agents}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:open-cluster-management:managed-clusters'}]
";

/// See the module.
pub(crate) struct World {
    pub(crate) hub: &'static ControlPlane,
    pub(crate) managed: &'static ControlPlane,
    folder: TempDir,
}

fn deploy(file: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The hub's webhook does not run here.
fn without_conversion(crd: &str) -> Result<String> {
    let crds = manifests::yaml(crd)?.into_iter().map(|crd: Manifest| {
        let mut crd = crd.value();
        crd["spec"].as_object_mut().map(|spec| spec.remove("conversion"));
        crd.to_string()
    });
    Ok(crds.collect::<Vec<_>>().join("\n---\n"))
}

impl World {
    pub(crate) async fn start() -> Result<Self> {
        let planes = fixture::get();
        let world = Self { hub: planes.hub, managed: planes.managed1, folder: TempDir::new("helloworld")? };
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds"))? {
            world.hub.apply_yaml(&without_conversion(&fs::read_to_string(entry?.path())?)?).await?;
        }
        for manifests in [deploy("hub.yaml")?, deploy("addon.yaml")?, AGENTS_MAY_ASK.to_owned()] {
            world.hub.apply_yaml(&manifests).await?;
        }
        let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "cluster1"}, "spec": {"hubAcceptsClient": true}});
        world.hub.apply_yaml(&cluster.to_string()).await?;
        world.hub.kubectl(&["create", "namespace", "cluster1"]).await?;
        Ok(world)
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    pub(crate) async fn start_manager(&self) -> Result<Process> {
        let kubeconfig = self.file("hub.kubeconfig");
        self.hub.write_login(NAMESPACE, "helloworld-manager", &kubeconfig).await?;
        let process = Process::build("manager", env!("CARGO_BIN_EXE_helloworld"), self.file("manager.log"))
            .args(["manager", "--kubeconfig", &kubeconfig, "--listen", "127.0.0.1:0", "--enable-leader-election"])
            .env("EXAMPLE_IMAGE_NAME", IMAGE)
            .start()?;
        process.wait_for_log("add-on manager started").await?;
        Ok(process)
    }

    /// What an admin does to have the add-on on the cluster, and the hub to take it on.
    pub(crate) async fn enable(&self) -> Result<()> {
        self.hub.apply_yaml(&deploy("enable.yaml")?).await?;
        let addon = self.hub_object("clustermanagementaddon", "helloworld").await?;
        let owner = json!({"apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ClusterManagementAddOn",
            "name": "helloworld", "uid": addon["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true});
        let patch = json!({"metadata": {"ownerReferences": [owner]}}).to_string();
        let args = ["patch", ADDONS, "helloworld", "-n", "cluster1", "--type=merge", "-p", &patch];
        self.hub.kubectl(&args).await.map(|_| ())
    }

    async fn work(&self) -> Result<ManifestWork> {
        eventually("there is a work", || async {
            let works: Api<ManifestWork> = Api::namespaced(self.hub.client().await?, "cluster1");
            anyhow::Ok(works.get_opt("addon-helloworld-deploy-0").await?)
        })
        .await
    }

    /// What the cluster's agent does with the add-on's work.
    pub(crate) async fn apply_work(&self) -> Result<()> {
        let work = self.work().await?;
        let objects: Vec<_> =
            work.spec.workload.manifests.iter().map(|manifest| manifest.value().to_string()).collect();
        assert!(objects[0].contains(IMAGE), "{}", objects[0]);
        self.managed.apply_yaml(&objects.join("\n---\n")).await
    }

    /// What it does when the work is gone.
    pub(crate) async fn delete_work(&self) -> Result<()> {
        for (resource, name) in [
            ("deployment", "helloworld-agent"),
            ("rolebinding", "helloworld-agent-sa"),
            ("role", "helloworld-agent-sa"),
            ("serviceaccount", "helloworld-agent-sa"),
        ] {
            self.managed.kubectl(&["delete", resource, name, "-n", "default"]).await?;
        }
        Ok(())
    }

    /// A certificate for what the cluster's agent asks.
    pub(crate) async fn certificate(&self, pem: &str) -> Result<Vec<u8>> {
        let groups = ["system:open-cluster-management:cluster1", "system:open-cluster-management:managed-clusters"];
        let agent = self.hub.kubeconfig_for_user("system:open-cluster-management:cluster1:agent1", &groups)?;
        let mut request = CertificateSigningRequest {
            spec: CertificateSigningRequestSpec {
                request: ByteString(pem.as_bytes().to_vec()),
                signer_name: signers::KUBE_API_SERVER_CLIENT.into(),
                usages: Some(signers::CLIENT_USAGES.map(str::to_owned).to_vec()),
                ..CertificateSigningRequestSpec::default()
            },
            ..CertificateSigningRequest::default()
        };
        request.metadata.generate_name = Some("addon-cluster1-helloworld-".into());
        request.labels_mut().insert(labels::CLUSTER_NAME.into(), "cluster1".into());
        request.labels_mut().insert(labels::ADDON_NAME.into(), "helloworld".into());
        let requests: Api<CertificateSigningRequest> = Api::all(client_for(&agent).await?);
        let name = requests.create(&PostParams::default(), &request).await?.name_any();
        eventually("the certificate is issued", || async {
            let status = requests.get(&name).await?.status;
            anyhow::Ok(status.and_then(|status| status.certificate).map(|certificate| certificate.0))
        })
        .await
    }

    /// The keys of the secret as files: the kubeconfig names the others.
    pub(crate) fn write_secret(&self, certificate: &[u8], key: &str) -> Result<()> {
        let login = AuthInfo {
            client_certificate: Some("tls.crt".into()),
            client_key: Some("tls.key".into()),
            ..AuthInfo::default()
        };
        let mut kubeconfig = self.hub.admin_config();
        let name = kubeconfig.auth_infos[0].name.clone();
        kubeconfig.auth_infos = vec![NamedAuthInfo { name, auth_info: Some(login), ..NamedAuthInfo::default() }];
        write_kubeconfig(&kubeconfig, self.file("kubeconfig"))?;
        fs::write(self.file("tls.crt"), certificate)?;
        Ok(fs::write(self.file("tls.key"), key)?)
    }

    pub(crate) async fn start_agent(&self) -> Result<Process> {
        let managed = self.file("managed.kubeconfig");
        self.managed.write_login("default", "helloworld-agent-sa", &managed).await?;
        Process::build("agent", env!("CARGO_BIN_EXE_helloworld"), self.file("agent.log"))
            .args(["agent", "--hub-kubeconfig", &self.file("kubeconfig"), "--managed-kubeconfig", &managed])
            .args(["--cluster-name=cluster1", "--addon-namespace=default"])
            .start()
    }

    pub(crate) async fn hub_object(&self, resource: &str, name: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.hub.kubectl(&["get", resource, name, "-n", "cluster1", "-o", "json"]).await?)?)
    }

    pub(crate) async fn hub_has(&self, resource: &str, name: &str) -> Result<bool> {
        has(self.hub, resource, "cluster1", name).await
    }

    pub(crate) async fn managed_has(&self, resource: &str, name: &str) -> Result<bool> {
        has(self.managed, resource, "default", name).await
    }
}

async fn has(plane: &ControlPlane, resource: &str, namespace: &str, name: &str) -> Result<bool> {
    let args = ["get", resource, name, "-n", namespace, "--ignore-not-found", "-o", "name"];
    Ok(!plane.kubectl(&args).await?.trim().is_empty())
}
