import { TagsInput, Text } from '@mantine/core'
import { count } from '@/shared/format'
import { fieldOf, opNames, opsOf, typeOf, type FieldType } from './fields'
import { faulty, Pick, Suggest, Typed, Word, type Suggestion } from './inputs'
import { fitted, valuesOf, type Op, type Test, type Value, type ValueType } from './model'
import type { Schemas } from '@/shared/api/client'
import { percent } from '@/shared/format'
import { meant, unseenValues } from './seen'

type Known = Schemas['CatalogField']

/** What a property or attribute is known to be. */
export interface Source {
  fields: Known[]
  /** Fields that the service keeps, of people. */
  kept?: Suggestion[]
  noun: 'property' | 'field'
  /** What was looked at to know the fields, such as "60 events looked at". */
  looked?: string
}

/** The type of constants that most values of a field have. */
function usual(known: Known | undefined): ValueType {
  const types = [...(known?.types.map((t) => t.type) ?? []), ...(known?.element_types ?? [])]
  const first = types.find((t) => t === 'text' || t === 'number' || t === 'boolean')
  return (first as ValueType | undefined) ?? 'text'
}

const emptyOf = (type: ValueType): Value => ({ type, text: type === 'boolean' ? 'true' : '' })

/** The inputs of a comparison: what, how, with what. wrong has the ids of the messages that say what is wrong with them. */
export function TestInputs({ test, source, onChange, wrong }: { test: Test; source: Source; onChange: (t: Test) => void; wrong: { path?: string; value?: string } }) {
  const field = source.noun === 'field' ? fieldOf(test.path) : undefined
  const type: FieldType = field?.type ?? 'any'
  const known = source.fields.find((f) => f.path === test.path)
  const wanted = typeOf(type, test.op)

  const withType = (op: Op, values: Value[], of: FieldType, k: Known | undefined): Value[] => {
    const t = typeOf(of, op)
    const plain: ValueType = t === 'time' ? 'text' : (t ?? values[0]?.type ?? usual(k))
    const next = fitted(values, op, emptyOf(plain))
    if (valuesOf(op) !== Infinity) return next.map((v) => (t === undefined || v.type === plain ? v : { ...emptyOf(plain), text: plain === 'boolean' ? 'true' : v.type === 'boolean' ? '' : v.text }))
    return next.filter((v) => v.text !== '')
  }
  const setPath = (path: string) => {
    const of = source.noun === 'field' ? fieldOf(path).type : 'any'
    const k = source.fields.find((f) => f.path === path)
    const ops = opsOf(of, test.op)
    const op = of !== 'any' && !opsOf(of, ops[0]!).includes(test.op) ? ops[0]! : test.op
    const untouched = test.values.every((v) => v.text === '' || v.type === 'boolean')
    onChange({ path, op, values: withType(op, k && untouched ? test.values.map(() => emptyOf(usual(k))) : test.values, of, k) })
  }
  const setOp = (op: Op) => onChange({ ...test, op, values: withType(op, test.values, type, known) })
  const setType = (t: ValueType) => onChange({ ...test, values: test.values.map((v) => ({ ...emptyOf(t), ...(t !== 'boolean' && v.type !== 'boolean' && { text: v.text }) })) })
  const setValue = (i: number, v: Value) => onChange({ ...test, values: test.values.map((x, j) => (j === i ? v : x)) })

  const unseen = unseenValues(test, known)
  const near = unseen.length === 1 ? meant(unseen[0]!, known) : undefined
  const paths: Suggestion[] = [...source.fields.map((f) => ({ value: f.path, note: shareWords(f.share, source.noun) })), ...(source.kept ?? [])]
  return (
    <>
      <Suggest value={test.path} from={paths} onChange={setPath} label={source.noun === 'field' ? 'Field of the person' : 'Property of the event'} placeholder={source.noun} error={wrong.path} />
      <Pick<Op> value={test.op} onChange={setOp} label="Comparison" choices={opsOf(type, test.op).map((op) => ({ value: op, label: opNames[op] }))} />
      {valuesOf(test.op) === Infinity ? (
        <List test={test} known={known} words={field?.words} type={wanted === undefined ? (test.values[0]?.type ?? usual(known)) : wanted === 'number' ? 'number' : 'text'} onChange={onChange} wrong={wrong.value} />
      ) : (
        test.values.map((v, i) => (
          <span key={i} style={{ display: 'contents' }}>
            {i > 0 && <Word>and</Word>}
            <Constant value={v} wanted={wanted} words={field?.words} known={known} onChange={(x) => setValue(i, x)} wrong={wrong.value} />
          </span>
        ))
      )}
      {(test.op === 'in_last_days' || test.op === 'not_in_last_days') && <Word>days</Word>}
      {wanted === undefined && valuesOf(test.op) > 0 && (
        <Pick<ValueType>
          value={test.values[0]?.type ?? usual(known)}
          onChange={setType}
          label="Type of the value"
          choices={[
            { value: 'text', label: 'as text' },
            { value: 'number', label: 'as number' },
            { value: 'boolean', label: 'as yes or no' },
          ]}
        />
      )}
      {source.looked && unseen.length > 0 && (
        <Text size="xs" c="dimmed" data-testid="unseen-value" aria-live="polite">
          None of the {source.looked} has {unseen.length > 1 ? 'the values ' : ''}
          {unseen.slice(0, 5).map((v) => `“${v}”`).join(', ')} there yet.{near !== undefined && near !== unseen[0] && ` Did you mean “${near}”?`}
        </Text>
      )}
    </>
  )
}

const seen = (known: Known | undefined, type: ValueType): Suggestion[] => known?.values.filter((v) => v.type === type).map((v) => ({ value: v.value, note: `${percent(v.share)} of values` })) ?? []

function Constant({ value, wanted, words, known, onChange, wrong }: { value: Value; wanted: ValueType | 'time' | undefined; words?: readonly string[]; known: Known | undefined; onChange: (v: Value) => void; wrong: string | undefined }) {
  const label = 'Value to compare with'
  if (wanted === 'time') {
    const plain = value.text === '' || /^\d{4}-\d{2}-\d{2}$/.test(value.text)
    return <Typed value={value.text} onChange={(text) => onChange({ type: 'text', text })} label={label} type={plain ? 'date' : undefined} placeholder="2026-01-31" least={12} error={wrong} />
  }
  if (value.type === 'boolean') return <Pick value={value.text} onChange={(text) => onChange({ type: 'boolean', text })} label={label} choices={[{ value: 'true', label: 'yes' }, { value: 'false', label: 'no' }]} error={wrong} />
  if (words) return <Pick value={value.text} onChange={(text) => onChange({ type: 'text', text })} label={label} choices={[...(value.text ? [] : [{ value: '', label: '…' }]), ...words.map((w) => ({ value: w, label: w }))]} error={wrong} />
  const numeric = value.type === 'number'
  return <Suggest value={value.text} from={seen(known, value.type)} onChange={(text) => onChange({ type: value.type, text })} label={label} placeholder={numeric ? '0' : 'value'} least={numeric ? 9 : 12} error={wrong} />
}

function List({ test, known, words, type, onChange, wrong }: { test: Test; known: Known | undefined; words?: readonly string[]; type: ValueType; onChange: (t: Test) => void; wrong: string | undefined }) {
  const change = (texts: string[]) => onChange({ ...test, values: texts.map((text) => test.values.find((v) => v.text === text) ?? { type, text }) })
  return (
    <TagsInput
      size="xs"
      aria-label="Values to compare with"
      placeholder={test.values.length === 0 ? 'value, Enter' : undefined}
      value={test.values.map((v) => v.text)}
      onChange={change}
      data={words ? [...words] : seen(known, type).map((s) => s.value)}
      splitChars={[]}
      acceptValueOnBlur
      allowDuplicates
      {...faulty(wrong)}
      styles={{ root: { minWidth: 200, maxWidth: 420, flex: 1 }, inputField: { minWidth: 60 } }}
      clearable
    />
  )
}

export const seenTimes = (n: number) => `${count(n)} ${n === 1 ? 'event' : 'events'}`

/** How much of what was looked at has a field: events their properties, updates of profiles their attributes. */
const shareWords = (share: number, noun: Source['noun']) => `in ${percent(share)} of ${noun === 'property' ? 'events' : 'updates'}`

/** How many were looked at, in words: 60 events looked at. */
export const lookedWords = (n: number, what: 'event' | 'update') => `${count(n)} ${what === 'event' ? (n === 1 ? 'event' : 'events') : n === 1 ? 'update of a profile' : 'updates of profiles'} looked at`
