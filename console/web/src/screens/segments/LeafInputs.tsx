import { Text } from '@mantine/core'
import { count } from '@/shared/format'
import classes from './builder.module.css'
import { useBuilder, useFaults, type Change } from './context'
import { channelNames, channels, consentNames, consentStatuses, fieldOf, kept } from './fields'
import { Pick, Typed, Word } from './inputs'
import type { Attribute, Consent, Membership } from './model'
import { lookedWords, TestInputs } from './TestInputs'
import { useAttributes, useLists, useSegments } from './useSuggestions'

const keptSuggestions = kept.map((f) => ({ value: f.path, note: f.label }))

/** geo.country is "DE" */
export function AttributeInputs({ node, set }: { node: Attribute; set: Change<Attribute> }) {
  const { said } = useBuilder()
  const wrong = useFaults(node.id)
  const attributes = useAttributes()
  const fields = attributes.data?.attributes ?? []
  const { path } = node.test
  const unseen = !said.has(node.id) && attributes.data !== undefined && fieldOf(path).type === 'any' && /^(geo|attributes)\../.test(path) && !fields.some((f) => f.path === path) && attributes.data.more === 0
  return (
    <div>
      <div className={classes.sentence}>
        <TestInputs test={node.test} source={{ fields, kept: keptSuggestions, noun: 'field', looked: attributes.data && lookedWords(attributes.data.looked_at, 'update') }} onChange={(test) => set((n) => ({ ...n, test }))} wrong={{ path: wrong('field'), value: wrong('value') }} />
      </div>
      {unseen && (
        <Text size="xs" c="dimmed" mt={4}>
          Nobody has this attribute yet.
        </Text>
      )}
    </div>
  )
}

/** is subscribed to e-mail since 1 January */
export function ConsentInputs({ node, set }: { node: Consent; set: Change<Consent> }) {
  const wrong = useFaults(node.id)
  const dated = node.status !== 'never_subscribed'
  const date = (key: 'since' | 'until', label: string) => (
    <Typed type={node[key] === '' || /^\d{4}-\d{2}-\d{2}$/.test(node[key]) ? 'date' : undefined} value={node[key]} onChange={(v) => set((n) => ({ ...n, [key]: v }))} label={label} least={12} error={wrong('date')} />
  )
  return (
    <div className={classes.sentence}>
      <Word>is</Word>
      <Pick value={node.status} onChange={(status) => set((n) => ({ ...n, status, ...(status === 'never_subscribed' && { since: '', until: '' }) }))} label="Consent" choices={consentStatuses.map((s) => ({ value: s, label: consentNames[s]! }))} />
      {node.status === 'pending' && <Word>to</Word>}
      <Pick value={node.channel} onChange={(channel) => set((n) => ({ ...n, channel }))} label="Channel" choices={channels.map((c) => ({ value: c, label: channelNames[c]! }))} />
      {dated && (
        <>
          <Word>subscribed since</Word>
          {date('since', 'Subscribed since')}
          <Word>and before</Word>
          {date('until', 'Subscribed before')}
        </>
      )}
    </div>
  )
}

/** is on the list Newsletter; is not in the segment Customers */
export function MembershipInputs({ node, set }: { node: Membership; set: Change<Membership> }) {
  const { segmentId } = useBuilder()
  const lists = useLists()
  const segments = useSegments()
  const noun = node.kind === 'list' ? 'the list' : 'the segment'
  const from = node.kind === 'list' ? (lists.data ?? []).map((l) => ({ value: l._id, label: l.name })) : (segments.data ?? []).filter((s) => s._id !== segmentId).map((s) => ({ value: s._id, label: s.count == null ? s.name : `${s.name} (${count(s.count)})` }))
  const on = node.kind === 'list' ? 'on' : 'in'
  return (
    <div className={classes.sentence}>
      <Pick
        value={node.member ? 'yes' : 'no'}
        onChange={(v) => set((n) => ({ ...n, member: v === 'yes' }))}
        label={`Whether people are ${on} it`}
        choices={[
          { value: 'yes', label: `is ${on}` },
          { value: 'no', label: `is not ${on}` },
        ]}
      />
      <Word>{noun}</Word>
      <Pick value={node.of} onChange={(of) => set((n) => ({ ...n, of }))} label={node.kind === 'list' ? 'List' : 'Segment'} choices={[...(node.of === '' ? [{ value: '', label: from.length === 0 ? `there is no ${node.kind} yet` : 'choose …' }] : []), ...from]} />
    </div>
  )
}
