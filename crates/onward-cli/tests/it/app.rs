//! `onward work --app`: workers in another language.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::harness::{Running, Sandbox};
use crate::stores::on_every_store;

on_every_store! {
    a_task_runs_in_a_worker_and_its_result_is_kept,
    a_failure_is_retried_with_its_class_and_message,
    the_progress_of_a_worker_stays_with_the_task,
    a_worker_that_is_silent_about_a_task_is_asked_to_stop_it,
    a_cancelled_task_is_stopped_in_the_worker,
    the_task_of_a_killed_worker_runs_again_at_once,
    workers_that_are_killed_again_and_again_lose_no_task,
    after_a_killed_gateway_the_worker_ends_and_the_next_one_goes_on,
    a_stopping_gateway_lets_running_tasks_finish_and_takes_no_others,
    a_worker_gets_no_more_tasks_than_its_credit,
    a_worker_holds_no_more_tasks_than_its_slots,
    a_worker_holds_no_more_tasks_of_a_kind_than_its_limit,
    children_are_submitted_with_the_end_of_a_task_or_at_once,
    a_header_above_its_bound_ends_the_session_with_an_error,
    a_task_of_an_unknown_kind_is_given_back_without_an_attempt,
    a_worker_that_stands_still_loses_its_tasks,
    a_program_that_is_not_there_is_named_with_the_remedy,
    a_program_that_is_no_worker_is_named_with_the_remedy,
    a_program_that_ends_without_a_message_is_named_with_the_remedy,
    an_import_error_of_a_worker_is_shown_and_not_blamed_on_the_protocol,
    work_without_anything_to_run_names_every_way,
    a_program_without_quotes_is_shown_with_quotes,
    a_gateway_that_is_interrupted_by_its_user_says_so,
    a_worker_of_another_protocol_is_refused,
    workers_connect_to_a_socket_that_only_its_owner_can_use,
    ends_that_a_worker_sends_all_at_once_are_all_kept,
    the_task_of_a_worker_that_is_gone_runs_again_after_the_lease,
    the_late_result_of_a_worker_that_stood_still_is_refused,
    an_address_beyond_loopback_is_refused_with_the_remedy,
    an_orchestration_of_a_worker_leads_to_its_result,
    a_worker_cannot_end_the_task_of_another_session,
    a_turn_whose_worker_dies_runs_again,
    a_worker_that_has_dropped_the_code_gets_the_turn_whole,
    a_turn_that_the_worker_fails_makes_a_dead_letter_that_goes_on_after_a_retry,
    a_reply_that_differs_from_the_history_makes_a_dead_letter,
}

/// The worker in plain Python, and the example for any language.
const WORKER: &str = include_str!("../workers/worker.py");

/// Starts a gateway with a worker program. `app` is Python, in which `work(handlers)` works.
fn start(sandbox: &Sandbox, app: &str, options: &[&str]) -> Running {
    sandbox.write("worker.py", WORKER);
    sandbox.write("app.py", &format!("import os, signal, time\nfrom worker import *\n{app}\n"));
    sandbox.start(&[&["work", "--app", "python3 app.py"], options].concat(), "")
}

/// Waits until a task has ended, and returns it.
fn ended(sandbox: &Sandbox, task: &str) -> serde_json::Value {
    sandbox.onward(&["task", "wait", task]);
    sandbox.json(&["task", "show", task]).remove(0)
}

/// Stops a gateway as a service manager does, which is no failure.
fn stop(running: Running) -> String {
    running.signal(Signal::TERM);
    let ended = running.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended.stderr
}

/// Returns the first error of a task.
fn error(task: &serde_json::Value) -> &str {
    task["errors"][0]["message"].as_str().unwrap_or_default()
}

/// Shows: W9, M6
fn a_task_runs_in_a_worker_and_its_result_is_kept(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "upper", "hello"]);
    let gateway = start(&sandbox, "work({'upper': lambda task: task.payload.upper()})", &[]);
    let task = ended(&sandbox, "1");
    assert_eq!((&task["state"], &task["result"]), (&"completed".into(), &"HELLO".into()));
    stop(gateway);
}

/// Shows: W9, T7
fn a_failure_is_retried_with_its_class_and_message(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "--retries", "1", "--backoff", "0", "x"]);
    let gateway = start(
        &sandbox,
        "def k(task):\n  if task.attempt == 1: raise ValueError('no')\n  return b'yes'\nwork({'k': k})",
        &[],
    );
    let task = ended(&sandbox, "1");
    assert_eq!((&task["state"], &task["attempts"], error(&task)), (&"completed".into(), &2.into(), "ValueError: no"));
    stop(gateway);
}

/// Shows: W9
fn the_progress_of_a_worker_stays_with_the_task(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let gateway = start(&sandbox, "work({'k': lambda task: task.progress(0.5, 'half') or b'done'})", &[]);
    let task = ended(&sandbox, "1");
    assert_eq!((&task["progress"]["fraction"], &task["progress"]["message"]), (&0.5.into(), &"half".into()), "{task}");
    stop(gateway);
}

/// Shows: W9, D2
fn a_worker_that_is_silent_about_a_task_is_asked_to_stop_it(sandbox: Sandbox) {
    let limits = ["--heartbeat-timeout", "300ms", "--retries", "9", "--backoff", "0"];
    sandbox.onward(&[&["submit", "--kind", "k"], &limits[..], &["x"]].concat());
    let app = "def k(task):\n  if task.attempt > 1: return b'done'\n  task.stopped.wait()\n  raise ValueError('stopped')\nwork({'k': k})";
    let gateway = start(&sandbox, app, &[]);
    let task = ended(&sandbox, "1");
    assert_eq!(task["state"], "completed");
    assert_eq!(error(&task), "no heartbeat for 300ms: ValueError: stopped");
    stop(gateway);
}

/// Shows: W9, T20
fn a_cancelled_task_is_stopped_in_the_worker(sandbox: Sandbox) {
    sandbox.pipe("started");
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let app = "def k(task):\n  open('started', 'w').write('x')\n  task.stopped.wait()\n  task.end('cancelled')\nwork({'k': k})";
    let gateway = start(&sandbox, app, &[]);
    sandbox.await_writer("started");
    sandbox.onward(&["task", "cancel", "1"]);
    assert_eq!(ended(&sandbox, "1")["state"], "cancelled");
    stop(gateway);
}

/// Shows: W9, B4
fn the_task_of_a_killed_worker_runs_again_at_once(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "--retries", "0", "x"]);
    let app = "def k(task):\n  open('runs', 'a').write('x')\n  if task.attempt == 1: os.kill(os.getpid(), signal.SIGKILL)\n  return b'done'\nwork({'k': k})";
    let gateway = start(&sandbox, app, &["--lease", "1h"]);
    let task = ended(&sandbox, "1");
    assert_eq!((&task["state"], &task["attempts"]), (&"completed".into(), &2.into()));
    assert!(error(&task).starts_with("the worker was lost"), "{task}");
    assert_eq!(sandbox.read("runs"), "xx");
    assert!(stop(gateway).contains("was killed by signal 9"));
}

/// Shows: W9, B4
fn workers_that_are_killed_again_and_again_lose_no_task(sandbox: Sandbox) {
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &crate::harness::numbers(100));
    let app = "def k(task):\n  if task.attempt == 1 and int(task.payload) % 25 == 0: os.kill(os.getpid(), signal.SIGKILL)\n  return task.payload\nwork({'k': k}, credit=8)";
    let gateway = start(&sandbox, app, &["--lease", "1h"]);
    sandbox.onward(&["queue", "wait", "default"]);
    for number in 1..=100 {
        let task = sandbox.json(&["task", "show", &number.to_string()]).remove(0);
        assert_eq!((&task["state"], &task["result"]), (&"completed".into(), &number.to_string().into()), "{task}");
    }
    stop(gateway);
}

/// Shows: W9, B4
fn after_a_killed_gateway_the_worker_ends_and_the_next_one_goes_on(sandbox: Sandbox) {
    sandbox.pipe("lives");
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    // The pipe ends when the worker does.
    let app = "def k(task):\n  if task.attempt > 1: return b'done'\n  lives = open('lives', 'w')\n  lives.write('x')\n  lives.flush()\n  time.sleep(3600)\nwork({'k': k})";
    let gateway = start(&sandbox, app, &["--lease", "1s"]);
    let mut lives = std::fs::File::open(sandbox.path("lives")).unwrap();
    std::io::Read::read_exact(&mut lives, &mut [0]).unwrap();
    gateway.signal(Signal::KILL);
    assert_eq!(std::io::Read::read(&mut lives, &mut [0]).unwrap(), 0);
    gateway.wait();
    let next = start(&sandbox, app, &["--lease", "1s"]);
    let task = ended(&sandbox, "1");
    assert_eq!((&task["state"], &task["attempts"]), (&"completed".into(), &2.into()));
    stop(next);
}

/// Shows: W9, T21
fn a_stopping_gateway_lets_running_tasks_finish_and_takes_no_others(sandbox: Sandbox) {
    sandbox.pipe("started");
    sandbox.pipe("go-on");
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &crate::harness::numbers(2));
    let app =
        "def k(task):\n  open('started', 'w').write('x')\n  open('go-on').read()\n  return b'done'\nwork({'k': k})";
    let mut gateway = start(&sandbox, app, &[]);
    sandbox.await_writer("started");
    gateway.signal(Signal::TERM);
    gateway.await_said("stopping");
    sandbox.write("go-on", "");
    let ended = gateway.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let states: Vec<_> =
        ["1", "2"].iter().map(|task| sandbox.json(&["task", "show", task])[0]["state"].clone()).collect();
    assert_eq!(states, ["completed", "waiting"]);
}

/// A handler that notes how many handlers run beside it, at most.
const COUNTING: &str = "running, most = [], []\n\
    def k(task):\n  running.append(task)\n  most.append(len(running))\n  time.sleep(0.02)\n  running.remove(task)\n  return str(max(most)).encode()\n";

/// Runs twelve tasks of the kind `k`, and returns the largest number that ran at once.
fn most_at_once(sandbox: &Sandbox, work: &str, options: &[&str]) -> u32 {
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &crate::harness::numbers(12));
    let gateway = start(sandbox, &format!("{COUNTING}{work}"), options);
    sandbox.onward(&["queue", "wait", "default"]);
    stop(gateway);
    let result = |number: u32| sandbox.json(&["task", "show", &number.to_string()])[0]["result"].clone();
    (1..=12).map(|number| result(number).as_str().unwrap().parse::<u32>().unwrap()).max().unwrap()
}

/// Shows: W9
fn a_worker_gets_no_more_tasks_than_its_credit(sandbox: Sandbox) {
    assert_eq!(most_at_once(&sandbox, "work({'k': k}, credit=1)", &[]), 1);
}

/// Shows: W9
fn a_worker_holds_no_more_tasks_than_its_slots(sandbox: Sandbox) {
    assert_eq!(most_at_once(&sandbox, "work({'k': k}, credit=8)", &["--slots", "1"]), 1);
}

/// Shows: W9
fn a_worker_holds_no_more_tasks_of_a_kind_than_its_limit(sandbox: Sandbox) {
    assert_eq!(most_at_once(&sandbox, "work({'k': k}, {'kinds': {'k': {'limit': 1}}}, credit=8)", &[]), 1);
}

/// Shows: W9, T11
fn children_are_submitted_with_the_end_of_a_task_or_at_once(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "parent", "x"]);
    let app = "def parent(task):\n  send({'t': 'submit', 'request': 1, 'parent': task.id, 'tasks': [{'kind': 'child', 'payload': 0}]}, b'now')\n  \
        task.end('ok', b'done', spawn=[{'kind': 'child', 'payload': 0}])\n\
        work({'parent': parent, 'child': lambda task: task.payload}, {'features': ['submit']})";
    let gateway = start(&sandbox, app, &[]);
    ended(&sandbox, "1");
    let result = |task: &&str| ended(&sandbox, task)["result"].as_str().unwrap().to_owned();
    let mut results: Vec<_> = ["2", "3"].iter().map(result).collect();
    results.sort_unstable();
    assert_eq!(results, ["done", "now"]);
    let parents: Vec<_> =
        ["2", "3"].iter().map(|task| sandbox.json(&["task", "show", task])[0]["parent"].clone()).collect();
    assert_eq!(parents, [1, 1]);
    stop(gateway);
}

/// Shows: M6
fn a_header_above_its_bound_ends_the_session_with_an_error(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let app = "def k(task):\n  send({'t': 'end', 'pad': 'x' * 70000, 'ends': []})\n  time.sleep(3600)\nwork({'k': k})";
    let mut gateway = start(&sandbox, app, &[]);
    gateway.await_said("header_too_large: a header has");
    stop(gateway);
}

/// Shows: W9
fn a_task_of_an_unknown_kind_is_given_back_without_an_attempt(sandbox: Sandbox) {
    sandbox.pipe("known");
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    sandbox.onward(&["submit", "--kind", "known", "x"]);
    // The credit of the second task comes with the acknowledgement of the first.
    let app = "work({'k': lambda task: task.end('release', why='unknown_kind'), 'known': lambda task: open('known', 'w').write('x') and b''})";
    let gateway = start(&sandbox, app, &[]);
    sandbox.await_writer("known");
    let task = sandbox.json(&["task", "show", "1"]).remove(0);
    assert_eq!((&task["state"], &task["attempts"]), (&"waiting".into(), &0.into()));
    assert_eq!(task["errors"].as_array().map_or(0, Vec::len), 0, "{task}");
    stop(gateway);
}

/// Shows: W9, B4
fn a_worker_that_stands_still_loses_its_tasks(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let app = "def k(task):\n  if task.attempt == 1: os.kill(os.getpid(), signal.SIGSTOP) or time.sleep(3600)\n  return str(task.attempt).encode()\nwork({'k': k})";
    let gateway = start(&sandbox, app, &["--lease", "500ms"]);
    let task = ended(&sandbox, "1");
    assert_eq!((&task["state"], &task["result"]), (&"completed".into(), &"2".into()), "{task}");
    stop(gateway);
}

/// Shows: W9
fn a_program_that_is_not_there_is_named_with_the_remedy(sandbox: Sandbox) {
    let ran = sandbox.onward(&["work", "--app", "no-such-program app.py"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`no-such-program`") && ran.stderr.contains("PATH"), "{}", ran.stderr);
}

/// Shows: W9
fn a_program_that_is_no_worker_is_named_with_the_remedy(sandbox: Sandbox) {
    let ran = sandbox.onward(&["work", "--app", "sh -c 'exit 3'"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("ended with exit status 3") && ran.stderr.contains("its output above"),
        "{}",
        ran.stderr
    );
}

/// Shows: W9
fn a_program_that_ends_without_a_message_is_named_with_the_remedy(sandbox: Sandbox) {
    let ran = sandbox.onward(&["work", "--app", "true"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("ended with exit status 0") && ran.stderr.contains("`hello`"), "{}", ran.stderr);
}

/// Shows: W9
fn an_import_error_of_a_worker_is_shown_and_not_blamed_on_the_protocol(sandbox: Sandbox) {
    sandbox.write("app.py", "import no_such_module\n");
    let ran = sandbox.onward(&["work", "--app", "python3 app.py"]);
    assert!(ran.stderr.contains("No module named 'no_such_module'"), "{}", ran.stderr);
    assert!(ran.stderr.contains("its output above") && !ran.stderr.contains("`hello`"), "{}", ran.stderr);
}

/// Shows: W9
fn work_without_anything_to_run_names_every_way(sandbox: Sandbox) {
    let ran = sandbox.onward(&["work"]);
    assert_eq!(ran.code, Some(2));
    assert!(["--app", "--listen", "--workflows"].iter().all(|way| ran.stderr.contains(way)), "{}", ran.stderr);
}

/// Shows: W9
fn a_program_without_quotes_is_shown_with_quotes(sandbox: Sandbox) {
    let ran = sandbox.onward(&["work", "--app", "python", "app.py"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--app \"python app.py\""), "{}", ran.stderr);
}

/// Shows: W9
fn a_gateway_that_is_interrupted_by_its_user_says_so(sandbox: Sandbox) {
    let gateway = listen(&sandbox);
    gateway.signal(Signal::INT);
    assert_eq!(gateway.wait().code, Some(130));
}

/// Shows: W9
fn a_worker_of_another_protocol_is_refused(sandbox: Sandbox) {
    let ran = start(&sandbox, "work({'k': lambda task: b''}, {'protocol': [99]})", &[]).wait();
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("protocol: the worker speaks [99]") && ran.stderr.contains("upgrade"),
        "{}",
        ran.stderr
    );
}

/// Starts a worker program that connects to the socket of a gateway.
fn connect(sandbox: &Sandbox, app: &str) -> std::process::Child {
    sandbox.write("worker.py", WORKER);
    sandbox.write("app.py", &format!("import os, signal, time\nfrom worker import *\n{app}\n"));
    let mut python = std::process::Command::new("python3");
    python.arg("app.py").current_dir(sandbox.path("")).env("ONWARD_GATEWAY", "ipc://onward.sock");
    python.stderr(std::process::Stdio::piped()).spawn().unwrap()
}

/// Starts a gateway that listens on the socket `onward.sock`.
fn listen(sandbox: &Sandbox) -> Running {
    listen_with_lease(sandbox, "500ms")
}

fn listen_with_lease(sandbox: &Sandbox, lease: &str) -> Running {
    let mut gateway = sandbox.start(&["work", "--listen", "ipc://onward.sock", "--lease", lease], "");
    gateway.await_said("listening for workers");
    gateway
}

/// Shows: W9, M6
fn ends_that_a_worker_sends_all_at_once_are_all_kept(sandbox: Sandbox) {
    const COUNT: usize = 1500;
    let lines = "x\n".repeat(COUNT);
    assert_eq!(sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &lines).code, Some(0));
    // A busy machine may need more than a short lease for so many ends.
    let gateway = listen_with_lease(&sandbox, "1m");
    let mut worker = connect(&sandbox, &FLOOD.replace("COUNT", &COUNT.to_string()));
    assert!(worker.wait().unwrap().success());
    assert_eq!(sandbox.json(&["task", "count", "--state", "completed"])[0]["tasks"], COUNT);
    stop(gateway);
}

/// Holds all tasks, ends them in one write of as many messages, and waits for every `ack`.
const FLOOD: &str = r"
link.settimeout(60)
handshake()
send({'t': 'hello', 'protocol': [1], 'kinds': {'k': {}}, 'slots': COUNT})
receive()
threading.Thread(target=beats, args=(1,), daemon=True).start()
send({'t': 'grant', 'credit': COUNT})
tasks, ended = [], 0
while len(tasks) < COUNT:
    tasks += receive()[0].get('tasks', [])
out = b''
for task in tasks:
    end = {'task': task['task'], 'fence': task['fence'], 'outcome': 'ok'}
    body = json.dumps({'t': 'end', 'ends': [end]}).encode()
    out += struct.pack('>BQ', 2, len(body)) + body
threading.Thread(target=link.sendall, args=(out,)).start()
while ended < COUNT:
    header, _ = receive()
    assert header['t'] != 'error', header
    ended += len(header['ends']) if header['t'] == 'ack' else 0
send({'t': 'bye'})
";

/// Shows: W9, M6
fn workers_connect_to_a_socket_that_only_its_owner_can_use(sandbox: Sandbox) {
    use std::os::unix::fs::PermissionsExt as _;

    sandbox.onward(&["submit", "--kind", "upper", "hello"]);
    let gateway = listen(&sandbox);
    let mode = std::fs::metadata(sandbox.path("onward.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut worker = connect(&sandbox, "work({'upper': lambda task: task.payload.upper()})");
    assert_eq!(ended(&sandbox, "1")["result"], "HELLO");
    stop(gateway);
    assert!(worker.wait().unwrap().success());
}

/// Shows: W9, B4
fn the_task_of_a_worker_that_is_gone_runs_again_after_the_lease(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let gateway = listen(&sandbox);
    let app =
        "def k(task):\n  if task.attempt == 1: os.kill(os.getpid(), signal.SIGKILL)\n  return b'done'\nwork({'k': k})";
    let mut first = connect(&sandbox, app);
    first.wait().unwrap();
    let mut second = connect(&sandbox, app);
    let task = ended(&sandbox, "1");
    assert_eq!((&task["state"], &task["attempts"]), (&"completed".into(), &2.into()));
    assert!(error(&task).contains("did not connect again within 500ms") || error(&task).contains("silent"), "{task}");
    stop(gateway);
    second.wait().unwrap();
}

/// Shows: W9
fn a_worker_cannot_end_the_task_of_another_session(sandbox: Sandbox) {
    sandbox.pipe("started");
    sandbox.pipe("stolen");
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let gateway = listen_with_lease(&sandbox, "1m");
    let app =
        "def k(task):\n  open('started', 'w').write('x')\n  open('stolen').read()\n  return b'mine'\nwork({'k': k})";
    let mut owner = connect(&sandbox, app);
    sandbox.await_writer("started");
    let thief = "handshake()\nresume = {'session': 'other', 'tasks': [{'task': '1', 'fence': '1'}]}\n\
        send({'t': 'hello', 'protocol': [1], 'kinds': {'other': {}}, 'resume': resume})\n\
        assert [receive()[0]['t'] for _ in range(2)] == ['welcome', 'stop']\n\
        send({'t': 'end', 'ends': [{'task': '1', 'fence': '1', 'outcome': 'ok', 'payload': 0}]}, b'stolen')\n\
        assert receive()[0]['ends'][0]['result'] == 'stale'\n";
    let ended_thief = connect(&sandbox, thief).wait_with_output().unwrap();
    assert!(ended_thief.status.success(), "{}", String::from_utf8_lossy(&ended_thief.stderr));
    sandbox.write("stolen", "x");
    assert_eq!(ended(&sandbox, "1")["result"], "mine");
    stop(gateway);
    owner.wait().unwrap();
}

/// Code of an orchestration by hand: it submits `upper`, and returns its result when `paid` came.
const ORDER: &str = "
def order(task):
  if task.new_only:
    open('new_only', 'w').close()
    return task.end('release', why='history')
  new, names = task.events[task.position:], [event['e'] for event in task.events]
  results = [event['result'] for event in task.events if event['e'] == 'task_ended']
  paid = 'signal' in names or 'signal_carried' in names
  reply = {'read': len(new), 'waits': ['paid'], 'end': {'do': 'wait'}}
  if 'task_submitted' not in names:
    decision = {'do': 'task', 'after': len(new) - 1, 'operation': 1, 'kind': 'upper', 'data': 'aGk='}
    reply['decisions'] = [decision]
  elif paid and results:
    reply['end'] = {'do': 'complete', 'result': results[0]}
  before(task, reply)
  task.end('turn', json.dumps(reply).encode())
kinds = {'order': {'orchestration': True}, 'upper': {}}
work({'order': order, 'upper': lambda task: task.payload.upper()}, {'kinds': kinds, 'features': ['turns', 'sticky']})
";

/// Starts a gateway whose worker runs `before` in each turn, with an orchestration and its signal.
fn order(sandbox: &Sandbox, before: &str) -> Running {
    sandbox.onward(&["orchestration", "start", "order", "--payload", "7"]);
    sandbox.onward(&["orchestration", "signal", "1", "paid", "5"]);
    start(sandbox, &format!("import json\ndef before(task, reply):\n  {before}\n{ORDER}"), &[])
}

/// Shows: W9, D1
fn an_orchestration_of_a_worker_leads_to_its_result(sandbox: Sandbox) {
    let gateway = order(&sandbox, "pass");
    let task = ended(&sandbox, "1");
    assert_eq!((&task["state"], &task["result"]), (&"completed".into(), &"HI".into()), "{task}");
    stop(gateway);
}

/// Shows: W9, D1
fn a_turn_whose_worker_dies_runs_again(sandbox: Sandbox) {
    let die = "if not os.path.exists('died'): open('died', 'w').close() or os.kill(os.getpid(), signal.SIGKILL)";
    let gateway = order(&sandbox, die);
    assert_eq!(ended(&sandbox, "1")["result"], "HI");
    assert_eq!(sandbox.json(&["task", "count", "--kind", "upper"])[0]["tasks"], 1);
    stop(gateway);
}

/// Shows: W9, D1
fn a_worker_that_has_dropped_the_code_gets_the_turn_whole(sandbox: Sandbox) {
    let keep = "reply['length'] = task.position + reply['read'] + len(reply.get('decisions', []))";
    let gateway = order(&sandbox, keep);
    assert_eq!(ended(&sandbox, "1")["result"], "HI");
    assert!(sandbox.path("new_only").exists(), "no turn came with new events only");
    stop(gateway);
}

/// Shows: W9, D9
fn a_turn_that_the_worker_fails_makes_a_dead_letter_that_goes_on_after_a_retry(sandbox: Sandbox) {
    let fail = "if not os.path.exists('failed'): open('failed', 'w').close() or int('x')";
    let gateway = order(&sandbox, fail);
    let task = ended(&sandbox, "1");
    assert!(task["state"] == "dead" && error(&task).contains("ValueError"), "{task}");
    sandbox.onward(&["orchestration", "retry", "1"]);
    assert_eq!(ended(&sandbox, "1")["result"], "HI");
    stop(gateway);
}

/// Shows: W9, D5
fn a_reply_that_differs_from_the_history_makes_a_dead_letter(sandbox: Sandbox) {
    let gateway = order(&sandbox, "[decision.update(operation=2) for decision in reply.get('decisions', [])]");
    let task = ended(&sandbox, "1");
    assert!(task["state"] == "dead" && error(&task).contains("the next one is 1"), "{task}");
    stop(gateway);
}

/// Shows: M6
fn an_address_beyond_loopback_is_refused_with_the_remedy(sandbox: Sandbox) {
    let ran = sandbox.onward(&["work", "--listen", "tcp://0.0.0.0:7071"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("CURVE") && ran.stderr.contains("tcp://127.0.0.1:PORT"), "{}", ran.stderr);
}

/// Shows: W9, B4
fn the_late_result_of_a_worker_that_stood_still_is_refused(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let gateway = listen(&sandbox);
    let app = "def k(task):\n  if task.attempt == 1: os.kill(os.getpid(), signal.SIGSTOP) or time.sleep(1)\n  return str(task.attempt).encode()\nwork({'k': k})";
    let mut first = connect(&sandbox, app);
    let pid = Pid::from_raw(i32::try_from(first.id()).unwrap()).unwrap();
    waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
    let mut second = connect(&sandbox, app);
    assert_eq!(ended(&sandbox, "1")["result"], "2");
    kill_process(pid, Signal::CONT).unwrap();
    // Its session is over, and the gateway says so to whatever it sends.
    let stderr = std::io::BufReader::new(first.stderr.take().unwrap());
    let mut lines = std::io::BufRead::lines(stderr);
    assert!(lines.any(|line| line.unwrap().starts_with("unexpected: ")));
    assert_eq!(sandbox.json(&["task", "show", "1"])[0]["result"], "2");
    first.kill().unwrap();
    first.wait().unwrap();
    stop(gateway);
    second.wait().unwrap();
}
