//! W4 and W6: what a thousand idle mirrors weigh, and what a storm of them leaves behind, in a process of its own, because
//! memory and file handles are counted by process.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fake::{OPERATOR, World};
use super::http::{bearer, host};

const ALONE: &str = "VOXGATE_TEST_ALONE";

#[test]
fn a_thousand_idle_mirrors_weigh_less_than_30_mib() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "doors::weight::in_a_process_of_its_own", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    println!("{text}");
}

/// The body of the test above; by itself it does nothing.
#[tokio::test]
async fn in_a_process_of_its_own() {
    if std::env::var_os(ALONE).is_none() { return }
    let world = World::with(|doors| doors.limits.connections = 1_100).await;
    let mut held = vec![];
    for _ in 0..50 { held.push(opened(&world).await) }
    let before = resident_kib();
    for _ in 0..1_000 { held.push(opened(&world).await) }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let grown = resident_kib().saturating_sub(before);
    println!("1,000 idle mirrors: {grown} KiB, {} KiB each (both ends of the connections)", grown / 1_000);
    assert!(grown < 30 * 1024, "{grown} KiB");
    drop(held);
    storm(&world).await;
    world.stop().await;
}

/// 5,000 sockets that come, are let in and go: nothing of them stays.
async fn storm(world: &World) {
    for _ in 0..1_000 { drop(opened(world).await) }
    settle().await;
    let (fds, rss) = (open_files(), resident_kib());
    for _ in 0..5_000 { drop(opened(world).await) }
    settle().await;
    let (fds_after, rss_after) = (open_files(), resident_kib());
    println!("after 5,000 more: {fds} -> {fds_after} files, {rss} -> {rss_after} KiB");
    assert!(fds_after <= fds + 5, "{fds} -> {fds_after}");
    assert!(rss_after <= rss + rss / 20 + 1_024, "{rss} -> {rss_after} KiB");
}

/// The server needs a moment to see that they went.
async fn settle() { tokio::time::sleep(Duration::from_secs(1)).await }

fn open_files() -> usize { std::fs::read_dir("/proc/self/fd").unwrap().count() }

/// A mirror by hand, whose client end is a bare connection: only the server's memory counts.
async fn opened(world: &World) -> TcpStream {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let text = format!("GET /v1/sessions/s2/events HTTP/1.1\r\n{}\r\n{}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        host(world.address), bearer(OPERATOR));
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut start = [0u8; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 101");
    stream
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")).and_then(|rest| rest.trim().split(' ').next()?.parse().ok()).unwrap()
}
