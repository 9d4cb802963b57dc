// Package messaging carries out what the state machine decided to send:
// campaigns, and messages of the service's own.
//
// # Background
//
// Pending recipients, past recipients and the outcome of each message are state of
// [resolver]: sets and counters that records change. This package does the
// network part. It asks the state for a batch of recipients, renders
// each message, hands it to a sender, and reports the outcome as a record before
// the same worker takes another one. After a crash it sends again only to recipients
// without a recorded outcome, with the same Message-ID.
//
// # How it is organised
//
//   - Package compose checks what campaigns, flows and single messages say, and makes the
//     message of one recipient. It knows neither the runs of campaigns nor the outbox.
//   - dispatcher.go runs campaigns, one runner each (run.go), and resumes
//     interrupted ones at start-up; where several nodes reach the log,
//     dispatcher_watch.go does so whenever a partition came.
//   - deliver.go has a medium per channel: e-mail, push messages, texts
//     (deliver_email.go, deliver_push.go, deliver_text.go). What an account has
//     not set up is captured.
//   - outbox.go carries out what is queued in the state: single e-mails
//     (outbox_mail.go), confirmations of double opt-in and those of flows among
//     them, text, push and in-app messages (outbox_text.go, outbox_push.go,
//     outbox_inapp.go), webhooks (outbox_hook.go), and calls of flows
//     (outbox_call.go), of which outbox_hosts.go bounds those to one host. The
//     dispatcher does not know it.
//   - claims.go says in the log what is about to be carried out, where several
//     nodes reach it; embedded nothing is claimed.
//   - mailer.go is the seam to the senders of e-mail: a relay (package email) or
//     the capture of development (package capture).
//
// # Invariants
//
//   - A recipient is sent a campaign once, but for those in flight when the process
//     is killed, whose repeat carries the same Message-ID. A process that is frozen
//     while another takes over repeats what it had in flight, and no more.
//   - No campaign goes to people who unsubscribed, bounced, complained, are suppressed
//     or have not confirmed: the state decides that in the batch record.
//   - Q1: workers, batches and retries are bounded; a run holds one batch.
package messaging
