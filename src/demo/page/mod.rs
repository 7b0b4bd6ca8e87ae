//! The product's page as steps, in its order.

mod deleting;
mod holding;
mod modes;

use super::kubelet::{Access, Volume};
use super::play::Play;

/// The page's example.
pub const STORE: Volume =
    Volume { name: "example-store", handle: "example-store", access: Access::ReadWriteMany };
/// A database with one writer.
pub const DATABASE: Volume =
    Volume { name: "example-database", handle: "example-database", access: Access::ReadWriteOncePod };

/// Plays all of it.
pub async fn play(play: &mut Play) -> anyhow::Result<()> {
    holding::volume_and_claim(play)?;
    let first = holding::a_pod_writes(play).await?;
    holding::the_same_pod_again(play, &first).await?;
    let second = holding::a_second_pod_is_refused(play).await?;
    holding::the_copy_outlives_its_pod(play, &first, &second).await?;
    holding::each_node_has_its_own(play).await?;
    modes::read_only(play).await?;
    modes::read_write_once_pod(play).await?;
    modes::bad_handle(play).await?;
    deleting::claim_deleted(play).await?;
    deleting::volume_deleted_while_held(play).await?;
    deleting::volume_deleted(play).await
}
