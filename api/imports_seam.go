package api

import (
	"context"
	"io"

	"github.com/musterhq/muster/api/internal/handler"
)

// Imports keeps the CSV files that were uploaded, and brings their rows in. It is safe
// for concurrent use. What the caller did wrong is a [*Refusal]. Each call concerns the
// files of one account.
type Imports interface {
	// Create takes the beginning of a file, Append the text behind it.
	Create(account uint64, f ImportFile) (Import, error)
	Append(account uint64, id string, p ImportPart) (Import, error)
	// Preview says what the columns are taken for and which rows would be refused.
	Preview(ctx context.Context, account uint64, id string, p ImportPlan) (ImportPreview, error)
	// Start puts the file in the queue.
	Start(ctx context.Context, account uint64, id string, p ImportPlan) (Import, error)
	// List has the newest first.
	List(account uint64) ([]Import, error)
	Get(account uint64, id string) (Import, error)
	// Refused is a CSV file of the rows that were refused: line, reason, and the cells.
	Refused(account uint64, id string) (io.ReadCloser, error)
	Cancel(account uint64, id string) (Import, error)
	Delete(account uint64, id string) error
}

// Refusal is an error of the caller of [Imports].
type Refusal = handler.Refusal

// The kinds of imports.
const (
	ImportPeople = "people"
	ImportEvents = "events"
)

// The states of an import.
const (
	ImportReceiving = "receiving" // parts of the file are missing
	ImportReady     = "ready"     // to be started
	ImportQueued    = "queued"    // others are before it
	ImportRunning   = "running"
	ImportDone      = "done"
	ImportCancelled = "cancelled"
	ImportFailed    = "failed"
)

// ImportFile is the beginning of a file.
type ImportFile struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Text string `json:"text"`
	// More reports that the text continues in parts.
	More bool `json:"more"`
}

// ImportPart is a further part of a file.
type ImportPart struct {
	// Offset is how many bytes of the file are before it.
	Offset int64  `json:"offset"`
	Text   string `json:"text"`
	More   bool   `json:"more"`
}

// ImportColumn says what a column of the file is. In a plan, columns that are not named
// are what the preview takes them for.
type ImportColumn struct {
	Name string `json:"name"` // as the first row has it
	// Field is the target of the column, such as email or attributes.zip; empty
	// leaves it out.
	Field *string `json:"field"`
	// Type is text, number or boolean, and time of a timestamp; empty is by its cells.
	Type string `json:"type"`
}

// ImportPlan says how the rows of a file are read.
type ImportPlan struct {
	Columns []ImportColumn `json:"columns"`
	// EventType is that of all rows of a file of events without such a column.
	EventType string `json:"event_type"`
	// ListID is the list that the people are put on.
	ListID string `json:"list_id"`
	// TriggerFlows lets events enrol people into flows.
	TriggerFlows bool `json:"trigger_flows"`
}

// ImportRefusal is a row that was refused, or would be.
type ImportRefusal struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// ImportPreview is the expected outcome of an import.
type ImportPreview struct {
	Columns []ImportPreviewColumn `json:"columns"`
	Rows    [][]string            `json:"rows"` // the first ones
	AllRows uint64                `json:"row_count"`
	// Checked rows from the beginning were looked at; Problems has the first of those that
	// would be refused, ProblemCount how many they are.
	Checked      uint64          `json:"checked_rows"`
	Problems     []ImportRefusal `json:"problems"`
	ProblemCount uint64          `json:"problem_count"`
	// Fault is why the file cannot be started with these columns; nil if it can.
	Fault *string `json:"fault"`
}

// ImportPreviewColumn is a column as it would be read.
type ImportPreviewColumn struct {
	Name  string  `json:"name"`
	Field *string `json:"field"`
	Type  string  `json:"type"`
}

// Import is an uploaded file and what became of it so far.
type Import struct {
	ID     string `json:"_id"`
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
	// Bytes were received; Rows is how many the file has, nil while parts are missing.
	Bytes int64   `json:"bytes"`
	Rows  *uint64 `json:"rows"`
	// Read rows are Taken, Duplicates, which were stored before, or Refused.
	Read       uint64 `json:"rows_read"`
	Taken      uint64 `json:"taken"`
	Duplicates uint64 `json:"duplicates"`
	Refused    uint64 `json:"refused"`
	// Rate is rows a second, of the last stretch.
	Rate float64 `json:"rows_per_second"`
	// Refusals are the first of them.
	Refusals []ImportRefusal `json:"refusals"`
	ListID   *string         `json:"list_id"`
	// Error is why it failed, or what it waits for.
	Error     *string `json:"error"`
	CreatedAt string  `json:"created_at"`
	StartedAt *string `json:"started_at"`
	EndedAt   *string `json:"ended_at"`
}
