//! Faults under load on three nodes. No acknowledged write is lost, no task is completed twice, and
//! every node makes progress.
//!
//! `ONWARD_ROUNDS` sets how often each fault happens (default: 10). `ONWARD_SEED` sets the random
//! seed (default: random).

use std::time::Duration;

use onward_testkit::postgres::{Crash, Pooler, Wire};
use onward_testkit::soak;

use super::cluster::{Cluster, NODES, server};

/// A lease shorter than the fault of a node.
const SHORT_LEASE: Duration = Duration::from_secs(1);
/// A lease longer than the server is down.
const LONG_LEASE: Duration = Duration::from_secs(10);

fn rounds() -> u64 {
    soak::number("ONWARD_ROUNDS").unwrap_or(10)
}

/// Shows: T21, B4, W10
#[test]
fn a_node_that_is_killed_loses_and_doubles_nothing() {
    let Some(server) = server() else { return };
    let urls = [(); NODES].map(|()| server.url());
    Cluster::start(server, urls, SHORT_LEASE).survive(rounds(), |cluster| {
        let node = cluster.any();
        cluster.replace(node);
    });
}

/// The node's reports after it continues are rejected, because other nodes have its tasks by then.
///
/// Shows: T21, B4, W10
#[test]
fn a_node_that_stands_still_for_longer_than_its_lease_loses_and_doubles_nothing() {
    let Some(server) = server() else { return };
    let urls = [(); NODES].map(|()| server.url());
    let refused = Cluster::start(server, urls, SHORT_LEASE).survive(rounds(), |cluster| {
        let node = cluster.any();
        cluster.stand_still(node);
    });
    assert!(refused > 0, "no node reported an end too late, so nothing was shown");
}

/// Shows: T21, B4, W10
#[test]
fn a_server_that_is_killed_and_restarted_loses_and_doubles_nothing() {
    let Some(server) = server() else { return };
    let urls = [(); NODES].map(|()| server.url());
    Cluster::start(server, urls, LONG_LEASE).survive(rounds(), |cluster| {
        let meanwhile = cluster.random.u32(0..1_000_000);
        cluster.server.crash(Crash::Killed, || (0..meanwhile).for_each(|_| std::hint::spin_loop()));
    });
}

/// The network comes back as it was, or with every connection broken.
///
/// Shows: T21, B4, W10
#[test]
fn a_node_that_is_cut_off_for_longer_than_its_lease_loses_and_doubles_nothing() {
    let Some(server) = server() else { return };
    let wires = [(); NODES].map(|()| Wire::to(server.port()));
    let urls = wires.each_ref().map(|wire| format!("postgres://onward@127.0.0.1:{}/postgres", wire.port()));
    Cluster::start(server, urls, SHORT_LEASE).survive(rounds(), |cluster| {
        let node = cluster.any();
        wires[node].cut();
        cluster.give_up(node);
        if cluster.random.bool() { wires[node].heal() } else { wires[node].heal_again() }
    });
}

/// Shows: T21, B4, W10
#[test]
fn a_pooler_that_is_killed_and_restarted_loses_and_doubles_nothing() {
    let Some(server) = server() else { return };
    let Some(mut pooler) = Pooler::start(&server) else { return };
    let urls = [(); NODES].map(|()| pooler.url());
    Cluster::start(server, urls, LONG_LEASE).survive(rounds(), |cluster| {
        let meanwhile = cluster.random.u32(0..1_000_000);
        pooler.crash(|| (0..meanwhile).for_each(|_| std::hint::spin_loop()));
    });
}
