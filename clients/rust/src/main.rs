//! tokio-postgres and sqlx against the server that the environment names.

mod sqlx_client;
mod tokio_client;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("tokio-postgres") => tokio_client::run().await,
        Some("sqlx") => sqlx_client::run().await,
        other => anyhow::bail!("there is no client {other:?}"),
    }
}

/// The part of the connection that the environment variable `name` gives.
fn given(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
