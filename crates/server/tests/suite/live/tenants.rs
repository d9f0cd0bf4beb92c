//! Whoever is bound to a tenant hears of its jobs alone, in whichever way he follows them.

use orchestrix_core::{JobId, NewJob, Queue, Tenant};
use orchestrix_store::ClaimedJob;

use super::*;

impl super::Place {
    async fn bound(&self, role: &str, tenant: &str) -> String {
        let made = self.call("POST", "/admin/keys", json!({"name": "n", "role": role, "tenant": tenant})).await;
        made["key"].as_str().unwrap().to_owned()
    }

    /// A job of this tenant that somebody works on.
    async fn running(&self, tenant: &str) -> ClaimedJob {
        let (tenant, queue) = (Tenant::new(tenant).unwrap(), Queue::new("shared").unwrap());
        let job = NewJob { tenant, queue, ..NewJob::new(JobType::new("t").unwrap()) };
        self.store.enqueue_job(job).await.unwrap();
        self.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1)).await.unwrap().remove(0)
    }

    async fn done(&self, job: &ClaimedJob) {
        self.store.finish_attempts(vec![OutcomeReport { token: job.token, outcome: Outcome::DONE }]).await.unwrap();
    }
}

/// What is said until a job is told to have this status.
fn until(socket: &mut WebSocket<TcpStream>, job: JobId, status: &str) -> Vec<Value> {
    let mut told = Vec::new();
    loop {
        let news = next(socket);
        let last = news["jobId"] == job.to_string() && news["status"] == status;
        told.push(news);
        if last {
            return told;
        }
    }
}

fn say(socket: &mut WebSocket<TcpStream>, message: &Value) {
    block_in_place(|| socket.send(Message::text(message.to_string()))).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_bound_to_a_tenant_hears_of_no_other_over_a_socket() {
    // Nobody reads his socket all the time here, so nobody is asked in a hurry whether he is there.
    let place = Place::new(ServerOptions { auth: Auth::Keys, ..ServerOptions::default() }).await;
    let (own, theirs) = (place.running("acme").await, place.running("other").await);
    let mut nobodys = theirs.id().to_string();
    let last = nobodys.pop().unwrap();
    nobodys.push(if last == '7' { '8' } else { '7' });
    let (unbound, _) = place.key("client").await;
    let (mut all, _) = place.socket(header::AUTHORIZATION, &format!("Bearer {unbound}")).unwrap();
    say(&mut all, &json!({"subscribe": {"all": true}}));
    until(&mut all, theirs.id(), "RUNNING");

    let mut sockets = Vec::new();
    for role in ["client", "operator", "admin"] {
        let key = place.bound(role, "acme").await;
        for (name, value) in [
            (header::AUTHORIZATION, format!("Bearer {key}")),
            (header::SEC_WEBSOCKET_PROTOCOL, format!("orchestrix, orchestrix.key.{key}")),
        ] {
            sockets.push(place.socket(name, &value).unwrap().0);
        }
    }
    for socket in &mut sockets {
        // By their ids: another's is told like one that is not there.
        for id in [theirs.id().to_string(), nobodys.clone()] {
            say(socket, &json!({"subscribe": {"jobs": [id]}}));
            let told = next(socket).to_string().replace(&id, "ID");
            assert_eq!(told, r#"{"code":"job_not_found","event":"error","jobId":"ID","message":"there is no job ID"}"#);
        }
        say(socket, &json!({"subscribe": {"jobs": [own.id().to_string()]}}));
        assert_eq!(until(socket, own.id(), "RUNNING").len(), 1);
        // By its queue, and with all others: what runs now, and every change.
        say(socket, &json!({"subscribe": {"queues": ["shared"], "all": true}}));
    }
    place.done(&theirs).await;
    until(&mut all, theirs.id(), "COMPLETED");
    let third = place.running("other").await;
    until(&mut all, third.id(), "RUNNING");
    place.done(&own).await;
    for socket in &mut sockets {
        let told = until(socket, own.id(), "COMPLETED");
        assert!(told.iter().all(|news| news["jobId"] == own.id().to_string()), "{told:?}");
    }
}
