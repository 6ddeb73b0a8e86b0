//! A hub that is killed while it reconciles placements.

use super::hub::MortalHub;
use crate::fleet::Fleet;

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_killed_at_any_write_of_a_placement_from_creation_to_deletion_finishes() -> anyhow::Result<()> {
    let hub = MortalHub::new().await?;
    let fleet = Fleet::new(&hub.world).await?;
    hub.reach(fleet.is_known()).await?;
    for nth in 1.. {
        let came_to_it = hub.mortal.live(nth, fleet.life_of_a_placement()).await?;
        if !came_to_it {
            assert!(nth > 8, "the life of a placement takes more than {nth} writes");
            return Ok(());
        }
    }
    Ok(())
}
