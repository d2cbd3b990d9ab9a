#!/usr/bin/env bash
# sqlx 0.9.0 (Rust), its Migrator, over MariaDB 10.11.5. It needs cargo.
#
# Expected: of two instances that start at once, one migrates and the other waits for it: the Migrator locks the database unless
# that is turned off, and sqlx's MySQL driver is for MariaDB, too.
# Seen: nothing is locked. sqlx asks for GET_LOCK(name, -1), which waits without limit on MySQL; MariaDB answers NULL to a negative
# timeout, with a warning, and sqlx takes any answer for the lock. The second instance finds the first at work and fails, saying that
# the migration "is partially applied" and how to repair what is not broken.
. "$(dirname "$0")/common.sh"

mariadb_server 10.11.5
mkdir src migrations
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"

[dependencies]
sqlx = { version = "=0.9.0", default-features = false, features = ["runtime-tokio", "mysql", "migrate"] }
tokio = { version = "=1.54.1", features = ["macros", "rt-multi-thread", "time"] }
TOML
echo 'CREATE TABLE orders (id INT PRIMARY KEY); DO SLEEP(8);' >migrations/1_slow.sql
cat >src/main.rs <<'RUST'
use sqlx::migrate::Migrator;
use sqlx::mysql::MySqlPool;
use std::path::Path;
use std::time::Duration;

async fn instance() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let url = format!("mysql://root@127.0.0.1:{}/test", std::env::var("MARIADB_PORT")?);
    let pool = MySqlPool::connect(&url).await?;
    Ok(Migrator::new(Path::new("migrations")).await?.run(&pool).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let first = tokio::spawn(instance());
    tokio::time::sleep(Duration::from_secs(2)).await; // the first migrates
    let outcome = match instance().await {
        Ok(()) => "has waited for the first".to_string(),
        Err(e) => format!("fails: {e}"),
    };
    println!("the second instance {outcome}");
    first.await??;
    println!("the first instance succeeds");
    Ok(())
}
RUST
cargo build -q --target-dir target 2>build.log || { tail -20 build.log; exit 1; }
MARIADB_PORT=$MARIADB_PORT timeout 60 target/debug/finding >seen
compare seen <<'EXPECTED'
the second instance fails: migration 1 is partially applied; fix and remove row from `_sqlx_migrations` table
the first instance succeeds
EXPECTED
