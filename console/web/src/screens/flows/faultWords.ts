/** What the server says that a draft lacks, in the words of the form. */
const words: Record<string, string> = {
  'trigger is missing': 'Choose when it begins.',
  'steps must have at least one step': 'Add a step.',
  'trigger.segment_id is missing': 'Choose the segment.',
  'trigger.list_id is missing': 'Choose the list.',
  'trigger.event is missing': 'Name the event.',
  'subject is missing': 'Write the subject.',
  'body is missing': 'Write the message.',
  'template_id is missing': 'Choose the template.',
  'title is missing': 'Write the title.',
  'channels must have at least one channel': 'Add a channel.',
  'url is missing': 'Write the address.',
  'definition is missing': 'Write the condition.',
  'must have tags to add or remove': 'Name tags to add or to remove.',
}

export const faultWords = (fault: string) => words[fault] ?? fault
