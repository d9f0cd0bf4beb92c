//! A subscriber bound to a tenant receives changes of that tenant's jobs only.

use orchestrix_core::{JobId, NewJob, Queue, Tenant};
use orchestrix_store::ClaimedJob;

use super::*;

impl super::LiveServer {
    async fn create_bound_key(&self, role: &str, tenant: &str) -> String {
        let created = self.call("POST", "/admin/keys", json!({"name": "n", "role": role, "tenant": tenant})).await;
        created["key"].as_str().unwrap().to_owned()
    }

    /// Enqueues and claims a job of this tenant.
    async fn start_job(&self, tenant: &str) -> ClaimedJob {
        let (tenant, queue) = (Tenant::new(tenant).unwrap(), Queue::new("shared").unwrap());
        let job = NewJob { tenant, queue, ..NewJob::new(JobType::new("t").unwrap()) };
        self.store.enqueue_job(job).await.unwrap();
        self.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1)).await.unwrap().remove(0)
    }

    async fn complete(&self, job: &ClaimedJob) {
        self.store.finish_attempts(vec![OutcomeReport { token: job.token, outcome: Outcome::DONE }]).await.unwrap();
    }
}

/// The messages up to the one with this status of the job.
fn read_until(socket: &mut WebSocket<TcpStream>, job: JobId, status: &str) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let message = next_message(socket);
        let last = message["jobId"] == job.to_string() && message["status"] == status;
        messages.push(message);
        if last {
            return messages;
        }
    }
}

fn send(socket: &mut WebSocket<TcpStream>, message: &Value) {
    block_in_place(|| socket.send(Message::text(message.to_string()))).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_key_receives_no_changes_of_other_tenants_over_a_socket() {
    // The test does not read all sockets all the time, so the ping interval stays at its default.
    let server = LiveServer::new(ServerOptions { auth: Auth::Keys, ..ServerOptions::default() }).await;
    let (own, theirs) = (server.start_job("acme").await, server.start_job("other").await);
    let mut unknown = theirs.id().to_string();
    let last = unknown.pop().unwrap();
    unknown.push(if last == '7' { '8' } else { '7' });
    let (unbound, _) = server.create_key("client").await;
    let (mut all, _) = server.open_socket(header::AUTHORIZATION, &format!("Bearer {unbound}")).unwrap();
    send(&mut all, &json!({"subscribe": {"all": true}}));
    read_until(&mut all, theirs.id(), "RUNNING");

    let mut sockets = Vec::new();
    for role in ["client", "operator", "admin"] {
        let key = server.create_bound_key(role, "acme").await;
        for (name, value) in [
            (header::AUTHORIZATION, format!("Bearer {key}")),
            (header::SEC_WEBSOCKET_PROTOCOL, format!("orchestrix, orchestrix.key.{key}")),
        ] {
            sockets.push(server.open_socket(name, &value).unwrap().0);
        }
    }
    for socket in &mut sockets {
        // By id: a job of another tenant looks like one that does not exist.
        for id in [theirs.id().to_string(), unknown.clone()] {
            send(socket, &json!({"subscribe": {"jobs": [id]}}));
            let message = next_message(socket).to_string().replace(&id, "ID");
            assert_eq!(
                message,
                r#"{"code":"job_not_found","event":"error","jobId":"ID","message":"there is no job ID"}"#
            );
        }
        send(socket, &json!({"subscribe": {"jobs": [own.id().to_string()]}}));
        assert_eq!(read_until(socket, own.id(), "RUNNING").len(), 1);
        // By queue and all: the running jobs, and every change.
        send(socket, &json!({"subscribe": {"queues": ["shared"], "all": true}}));
    }
    server.complete(&theirs).await;
    read_until(&mut all, theirs.id(), "COMPLETED");
    let third = server.start_job("other").await;
    read_until(&mut all, third.id(), "RUNNING");
    server.complete(&own).await;
    for socket in &mut sockets {
        let messages = read_until(socket, own.id(), "COMPLETED");
        assert!(messages.iter().all(|message| message["jobId"] == own.id().to_string()), "{messages:?}");
    }
}
