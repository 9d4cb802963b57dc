package campaigns

import "github.com/musterhq/muster/resolver/internal/feature"

// Commands are the commands that change the state.
var Commands = map[string]feature.Command[*State]{
	CommandTemplateSave:   feature.Do((*State).saveTemplate),
	CommandTemplateDelete: feature.Do((*State).deleteTemplate),

	CommandSave:       feature.Do((*State).save),
	CommandSave1:      feature.Do((*State).saveUnscheduled),
	CommandDelete:     feature.Do((*State).delete),
	CommandUnschedule: feature.Do((*State).unschedule),

	CommandStart:   feature.Do((*State).start),
	CommandStart1:  feature.Do((*State).startUnrecorded),
	CommandBatch:   feature.Do((*State).batch),
	CommandResult:  feature.Do((*State).result),
	CommandResult1: feature.Do((*State).result),
	CommandFinish:  feature.Do((*State).finish),
	CommandResume:  feature.Do((*State).resume),
}
