package state

// What the rules of Apply make of a record is part of the state, so two builds with
// other rules must not take turns on a partition. Three things keep them from it:
//
//   - A partition's epoch record has the version of its node's build. A build that
//     finds a newer one than its own stops there, before the first record that was
//     applied by rules that it does not know.
//   - A checkpoint has the version of the build that wrote it, and a build refuses
//     one of a newer one: the record may be behind it. Shared ones are refused alike.
//   - The record that makes an account has it as well, for logs without epochs.
//
// A node that meets one of them fails as a whole, so that its partitions go to nodes
// of the newer build. The other way round a newer build reads what older ones wrote, and
// says with its own epoch record that it was there. A node that begins no epochs says it
// once, with a record partition.rules.
//
// From version [RulesNoted] on the state has the newest version that records have said,
// and a rule that changes asks for it: what was applied under older rules is replayed by
// them, also by a newer build.

// RulesNoted is the first version that the state notes. Version 24 has two changes: what
// an enrolment of a flow is held up at is preceded by another look at its condition, and
// each message of an omni-channel step that fails counts.
const RulesNoted = 24

// What later versions changed. Each rule has a constant of its own, beside the code that asks
// for it:
//
//   - 25: conversation.open opens a WhatsApp conversation with a number; the event
//     whatsapp_received opens none with its profile any more.
//   - 25: of the reports that a text was delivered, was read and failed the first holds.
//   - 25: a STOP does not undo a START that was written after it, and a START is compared
//     with when the last STOP was written, not with when it came.
//   - 25: steps of flows send by the account's own instant messenger.
//   - 25: a campaign that is sent again keeps the links of before, and counts the clicks on
//     those of each content apart (campaigns).
//   - 25: currencies of orders and carts are codes of ISO 4217 (orders).
//   - 25: quantities of items are from 0 on, below 1e11 (orders).
//   - 25: a cart needs no items, and says whether it is empty; any order_placed follows it (orders).
//   - 25: earlier touches of a source are kept, so that late orders belong to the right one (orders).
//   - 25: conditions of flows may ask for an open cart (automation).
//   - 25: templates of WhatsApp have named parameters, kinds of headers, places and buttons (automation,
//     campaigns).
//   - 25: an address that does not exist counts as bounced also where the person continues to
//     another channel of the campaign (campaigns).
//   - 25: a form asks once an hour, also where a submission was confirmed in it (forms).
//   - 25: an address that is not confirmed stays pending beneath a graver block, and is asked
//     to confirm when that is lifted.
//   - 25: a confirmation is refused for another address than it was sent to, a contact whose
//     e-mail is replaced while it is pending is asked at the new one, and the submission of a
//     form confirms no address of another profile.
//   - 25: an address that was asked to confirm is noted by its hash.
//   - 25: an answer to START is marked, so that it goes out only to people who may be sent to.
//   - 26: conditions that count the same events in windows of different lengths share one
//     state (segments).
//   - 26: a session may ask for the password or the sign-in link that it is made for (access).
//   - 26: the outcome of a message to a profile that was erased meanwhile is noted, so that its
//     text leaves the log.
//   - 26: a change of password may ask for the password that it replaces (access).
//   - 26: the verification of a sender domain may ask for the token that was looked up (domains).
//   - 26: the start of a campaign may ask for the version of the campaign and its template that it
//     was made of, and so may the end of a schedule that could not be carried out (campaigns).

// OldestRules is the oldest version whose states are read: that of release 0.1.0.
const OldestRules = 9

// ApplyVersion is the version of the state machine's rules. It is part of the
// state: a build refuses a state made under newer rules.
const ApplyVersion = 26
