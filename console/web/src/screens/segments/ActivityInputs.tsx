import { ActionIcon, Button } from '@mantine/core'
import { count } from '@/shared/format'
import { Icon } from '@/shared/icons'
import classes from './builder.module.css'
import { useBuilder, useFaults, type Change } from './context'
import { countNames, countOps } from './fields'
import { faulty, Pick, Suggest, Typed, Word } from './inputs'
import { fitted, newId, newTest, valuesOf, type Activity, type Fn, type Op } from './model'
import { lookedWords, seenTimes, TestInputs } from './TestInputs'
import { offered, useCatalog, useEventType } from './useSuggestions'
import { TagsInput, Text } from '@mantine/core'

const measures = [
  { value: 'count', label: 'how often' },
  { value: 'sum', label: 'with the sum of' },
  { value: 'avg', label: 'with the average of' },
  { value: 'min', label: 'with the lowest' },
  { value: 'max', label: 'with the highest' },
  { value: 'distinct', label: 'with different values of' },
] as const

/** did item_purchased at least 3 times in the last 30 days where value is more than 50 */
export function ActivityInputs({ node, set }: { node: Activity; set: Change<Activity> }) {
  const { said, focus } = useBuilder()
  const wrong = useFaults(node.id)
  const catalog = useCatalog()
  const type = useEventType(node.event)
  const fields = type.data?.properties ?? []
  const known = catalog.data?.find((t) => t.key === node.event)
  const unseen = node.event !== '' && catalog.data !== undefined && (known === undefined || known.count === 0)
  const setWhere = (where: Activity['where']) => set((n) => ({ ...n, where }))
  // The card's first empty field is that of the new filter, once the event is named.
  const addFilter = () => {
    setWhere([...node.where, { id: newId(), ...newTest() }])
    focus(node.id)
  }
  return (
    <div>
      <div className={classes.sentence}>
        <Pick value={node.did ? 'did' : 'not'} onChange={(v) => set((n) => ({ ...n, did: v === 'did' }))} label="Whether people did it" choices={[{ value: 'did', label: 'did' }, { value: 'not', label: 'did not do' }]} />
        <Suggest
          value={node.event}
          from={offered(catalog.data).sort((a, b) => b.count - a.count).map((t) => ({ value: t.key, note: seenTimes(t.count) }))}
          onChange={(event) => set((n) => ({ ...n, event: event.trim() }))}
          label="Event"
          placeholder="event"
          least={16}
          error={wrong('event')}
        />
        <Pick<'count' | Fn>
          value={node.aggregate?.fn ?? 'count'}
          onChange={(v) => set((n) => (v === 'count' ? { ...n, aggregate: null } : { ...n, aggregate: { fn: v, property: n.aggregate?.property ?? '' } }))}
          label="What is compared"
          choices={[...measures]}
        />
        {node.aggregate && (
          <Suggest
            value={node.aggregate.property}
            from={fields.filter((f) => node.aggregate?.fn === 'distinct' || f.types.some((t) => t.type === 'number')).map((f) => ({ value: f.path }))}
            onChange={(property) => set((n) => ({ ...n, aggregate: n.aggregate && { ...n.aggregate, property } }))}
            label="Property that is compared"
            placeholder="property"
            error={wrong('property')}
          />
        )}
        <Pick<Op> value={node.compare.op} onChange={(op) => set((n) => ({ ...n, compare: { op, values: fitted(n.compare.values, op, '1') } }))} label="How the number is compared" choices={countOps.map((op) => ({ value: op, label: countNames[op]! }))} />
        <Numbers node={node} set={set} wrong={wrong('number')} />
        {!node.aggregate && <Word>{node.compare.values.length === 1 && node.compare.values[0] === '1' ? 'time' : 'times'}</Word>}
        <Pick
          value={node.lastDays === null ? 'all' : 'last'}
          onChange={(v) => set((n) => ({ ...n, lastDays: v === 'all' ? null : (n.lastDays ?? '30') }))}
          label="Time that counts"
          choices={[
            { value: 'all', label: 'at any time' },
            { value: 'last', label: 'in the last' },
          ]}
        />
        {node.lastDays !== null && (
          <>
            <Typed numeric value={node.lastDays} onChange={(lastDays) => set((n) => ({ ...n, lastDays }))} label="Number of days" error={wrong('days')} least={6} />
            <Word>{node.lastDays === '1' ? 'day' : 'days'}</Word>
          </>
        )}
        {node.where.length === 0 && (
          <Button variant="subtle" size="compact-xs" onClick={addFilter}>
            where …
          </Button>
        )}
      </div>
      {node.where.length > 0 && (
        <div className={classes.filters}>
          {node.where.map((f, i) => (
            <div key={f.id} className={classes.sentence}>
              <Word>{i === 0 ? 'where' : 'and'}</Word>
              <TestInputs test={f} source={{ fields, noun: 'property', looked: type.data && lookedWords(type.data.looked_at, 'event') }} onChange={(t) => setWhere(node.where.map((x) => (x.id === f.id ? { ...t, id: x.id } : x)))} wrong={{ path: wrong(`filter ${i} property`), value: wrong(`filter ${i} value`) }} />
              <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Remove the filter on ${f.path || 'no property'}`} onClick={() => setWhere(node.where.filter((x) => x.id !== f.id))}>
                <Icon name="x" size={14} />
              </ActionIcon>
              {type.data && !said.has(node.id) && f.path !== '' && !fields.some((k) => k.path === f.path) && type.data.more === 0 && type.data.looked_at > 0 && (
                <Text size="xs" c="dimmed">
                  no event of this type had this property yet
                </Text>
              )}
            </div>
          ))}
          <div>
            <Button variant="subtle" size="compact-xs" leftSection={<Icon name="plus" size={12} />} onClick={addFilter}>
              and where …
            </Button>
          </div>
        </div>
      )}
      {unseen && !said.has(node.id) && (
        <Text size="xs" c="dimmed" mt={4} data-testid="unseen">
          No event of this type yet{known ? '; it is defined' : ''}.{known || !catalog.data ? '' : ` There are ${count(catalog.data.length)} types.`}
        </Text>
      )}
    </div>
  )
}

function Numbers({ node, set, wrong }: { node: Activity; set: Change<Activity>; wrong: string | undefined }) {
  const { op, values } = node.compare
  const setValues = (next: string[]) => set((n) => ({ ...n, compare: { ...n.compare, values: next } }))
  if (valuesOf(op) === Infinity)
    return <TagsInput size="xs" aria-label="Numbers to compare with" value={values} onChange={setValues} acceptValueOnBlur splitChars={[' ', ';']} {...faulty(wrong)} styles={{ root: { minWidth: 140, maxWidth: 300 } }} />
  return values.map((v, i) => (
    <span key={i} style={{ display: 'contents' }}>
      {i > 0 && <Word>and</Word>}
      <Typed numeric value={v} onChange={(x) => setValues(values.map((y, j) => (j === i ? x : y)))} label="Number to compare with" error={wrong} least={6} />
    </span>
  ))
}
