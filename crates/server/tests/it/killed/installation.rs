//! A hub that is killed while it installs an add-on where a placement wants it, and removes it where none does any more.

use std::collections::BTreeSet;

use anyhow::Result;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use ocm_api::{
    addon::v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn},
    annotations::PLACEMENT_DISABLE,
    cluster::v1beta1::{Placement, PlacementDecision},
    components::placement_decision_name,
    conditions::addon::{CONFIGURED, PROGRESSING},
    labels,
    reasons::addon::COMPLETED,
};
use ocm_runtime::conditions::{find, is_true};
use ocm_testing::{Seen, eventually, unique};
use serde_json::json;

use super::hub::MortalHub;
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_killed_at_any_write_of_an_addons_installation_or_removal_finishes_it() -> Result<()> {
    let hub = MortalHub::new().await?;
    let stage = Stage::new(&hub.world).await?;
    hub.reach(stage.is_ready(&hub.world)).await?;
    let mut addons = Vec::new();
    for nth in 1.. {
        addons.push(stage.chosen_addon().await?);
        if !hub.mortal.live(nth, addons[nth - 1].installs()).await? {
            assert!(nth > 5, "an installation takes more than {nth} writes");
            break;
        }
    }
    let mut removals = 0;
    for (nth, addon) in (1..).zip(&addons) {
        if !hub.mortal.live(nth, addon.leaves_one_cluster()).await? {
            break;
        }
        removals = nth;
    }
    assert!((2..addons.len()).contains(&removals), "a removal takes two writes or some more, not {removals}");
    hub.reach(stage.is_cleared(&addons)).await
}

/// Two clusters without agents, and a namespace for placements.
struct Stage {
    hub: Client,
    namespace: String,
    stays: String,
    goes: String,
}

/// An add-on that follows a placement of the same name. The test writes the decisions of that placement.
struct Addon<'a> {
    stage: &'a Stage,
    name: String,
}

impl Stage {
    async fn new(world: &World) -> Result<Self> {
        let (hub, namespace, stays, goes) = (world.hub.clone(), unique("fleet"), unique("stays"), unique("goes"));
        world.hub_plane.kubectl(&["create", "namespace", &namespace]).await?;
        world.create_cluster(&stays).await?;
        world.create_cluster(&goes).await?;
        Ok(Self { hub, namespace, stays, goes })
    }

    async fn is_ready(&self, world: &World) -> Result<()> {
        world.is_accepted_with_rights(&self.stays).await?;
        world.is_accepted_with_rights(&self.goes).await
    }

    /// An add-on that does not follow its placement yet, which has selected both clusters.
    async fn chosen_addon(&self) -> Result<Addon<'_>> {
        let addon = Addon { stage: self, name: unique("addon") };
        let annotations = json!({PLACEMENT_DISABLE: "true"});
        let placement = json!({"metadata": {"name": addon.name, "annotations": annotations}, "spec": {}});
        let placements = Api::<Placement>::namespaced(self.hub.clone(), &self.namespace);
        placements.create(&PostParams::default(), &serde_json::from_value(placement)?).await?;
        let labels = json!({labels::PLACEMENT: addon.name, labels::DECISION_GROUP_NAME: "",
            labels::DECISION_GROUP_INDEX: "0"});
        let decision = json!({"metadata": {"name": placement_decision_name(&addon.name, 1), "labels": labels}});
        self.decisions().create(&PostParams::default(), &serde_json::from_value(decision)?).await?;
        addon.choose(&[&self.stays, &self.goes]).await?;
        Ok(addon)
    }

    fn decisions(&self) -> Api<PlacementDecision> {
        Api::namespaced(self.hub.clone(), &self.namespace)
    }

    /// The placements select no cluster any more, and nothing is left.
    async fn is_cleared(&self, addons: &[Addon<'_>]) -> Result<()> {
        for addon in addons {
            addon.choose(&[]).await?;
        }
        let all = Api::<ManagedClusterAddOn>::all(self.hub.clone());
        eventually("no add-on is left", || async {
            let left: Vec<_> = all.list(&ListParams::default()).await?.iter().map(Addon::place).collect();
            anyhow::Ok(if left.is_empty() { Seen::Settled(()) } else { Seen::NotYet(format!("{left:?}")) })
        })
        .await
    }
}

impl Addon<'_> {
    async fn installs(&self) -> Result<()> {
        let placement = json!({"namespace": self.stage.namespace, "name": self.name});
        let strategy = json!({"type": "Placements", "placements": [placement]});
        let management = json!({"metadata": {"name": self.name}, "spec": {"installStrategy": strategy}});
        self.managements().create(&PostParams::default(), &serde_json::from_value(management)?).await?;
        self.is_installed_on(&[&self.stage.stays, &self.stage.goes]).await
    }

    async fn leaves_one_cluster(&self) -> Result<()> {
        self.choose(&[&self.stage.stays]).await?;
        self.is_installed_on(&[&self.stage.stays]).await
    }

    /// Makes the placement select these clusters.
    async fn choose(&self, clusters: &[&String]) -> Result<()> {
        let decisions: Vec<_> = clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
        let status = Patch::Merge(json!({"status": {"decisions": decisions}}));
        let name = placement_decision_name(&self.name, 1);
        self.stage.decisions().patch_status(&name, &PatchParams::default(), &status).await?;
        Ok(())
    }

    /// Waits until the add-on is on these clusters and no others, owned and configured, and its progress reports it.
    async fn is_installed_on(&self, clusters: &[&String]) -> Result<()> {
        let places: BTreeSet<_> = clusters.iter().map(|cluster| format!("{cluster}/{}", self.name)).collect();
        let of_name = ListParams::default().fields(&format!("metadata.name={}", self.name));
        let all = Api::<ManagedClusterAddOn>::all(self.stage.hub.clone());
        eventually(&format!("{places:?} are all there is"), || async {
            let management = self.managements().get(&self.name).await?;
            let addons = all.list(&of_name).await?.items;
            let settled = addons.iter().map(Self::place).collect::<BTreeSet<_>>() == places
                && addons.iter().all(|addon| is_ready(addon, &management))
                && self.is_told(&management, clusters.len());
            let seen = || format!("{addons:?} with {:?}", management.status);
            anyhow::Ok(if settled { Seen::Settled(()) } else { Seen::NotYet(seen()) })
        })
        .await
    }

    /// Whether the progress is that the add-on is installed on so many clusters of its placement.
    fn is_told(&self, management: &ClusterManagementAddOn, count: usize) -> bool {
        let told = management.status.as_ref().map(|status| status.install_progressions.as_slice());
        let Some([told]) = told else { return false };
        let is_done = find(&told.conditions, PROGRESSING).is_some_and(|found| {
            found.status == "False"
                && found.reason == COMPLETED
                && found.message.contains(&format!("{count} of {count}"))
        });
        (&told.namespace, &told.name) == (&self.stage.namespace, &self.name) && is_done
    }

    fn place(addon: &ManagedClusterAddOn) -> String {
        format!("{}/{}", addon.namespace().unwrap_or_default(), addon.name_any())
    }

    fn managements(&self) -> Api<ClusterManagementAddOn> {
        Api::all(self.stage.hub.clone())
    }
}

/// Whether an add-on is owned by its ClusterManagementAddOn, and configured.
fn is_ready(addon: &ManagedClusterAddOn, management: &ClusterManagementAddOn) -> bool {
    let [owner] = addon.owner_references() else { return false };
    let is_owned = Some(&owner.uid) == management.uid().as_ref() && owner.controller == Some(true);
    let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    is_owned && is_true(conditions, CONFIGURED)
}
