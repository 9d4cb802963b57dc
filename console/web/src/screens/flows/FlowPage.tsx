import { Alert, Box, Button, Group, Paper, SegmentedControl, Skeleton, Text, TextInput, Tooltip } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { api, data, whole, type Schemas } from '@/shared/api/client'
import { ApiError, messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { Code } from '@/shared/Code'
import { Conflict, isConflict } from '@/shared/Conflict'
import { useConfirm } from '@/shared/confirm'
import { count, timeOfDay } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { JsonError, parseJson, writeJson, type Json } from '@/shared/json'
import { Page } from '@/shared/Page'
import { Failed, QueryView } from '@/shared/states'
import { fromJson } from '../segments/definition'
import { sentence } from '../segments/sentence'
import { useNames } from '../segments/useSuggestions'
import { useUndo } from '../segments/useUndo'
import { useTemplates } from '../templates/useTemplates'
import { Enrolments, HereNow } from './Enrolments'
import { DryRun } from './DryRun'
import { FlowStatus } from './FlowList'
import { FlowRevenue } from './FlowRevenue'
import { checked, definitionOf, insert, remove, replace, stepNames, summary, text, type Definition } from './model'
import { StepPanel, TriggerPanel } from './StepPanel'

const Canvas = lazy(() => import('./Canvas'))
const route = getRouteApi('/shell/flows/$id')

interface Read {
  flow: Schemas['Flow']
  definition: Definition
}

async function readFlow(id: string): Promise<Read> {
  // As text first: numbers of conditions keep every digit.
  const body = await whole(api.GET('/console/api/v1/flows/{id}', { params: { path: { id } }, parseAs: 'text' }) as never) as unknown as string
  return { flow: (JSON.parse(body) as { data: Schemas['Flow'] }).data, definition: definitionOf((parseJson(body) as { data: Json }).data) }
}

/** /flows/$id */
export function FlowPage() {
  const { id } = route.useParams()
  const client = useQueryClient()
  const [taken, setTaken] = useState(0)
  const flow = useQuery({ queryKey: ['flow', id], queryFn: () => readFlow(id), refetchInterval: (q) => (q.state.data && (q.state.data.flow.publishing || q.state.data.flow.status === 'live') ? 5000 : false) })
  return (
    <QueryView query={flow} what="the flow">
      {(f) => (
        <Editor
          key={`${id} ${f.flow.status} ${taken}`}
          read={f}
          readAt={flow.dataUpdatedAt}
          onTake={(theirs) => {
            client.setQueryData(['flow', id], theirs)
            setTaken(taken + 1)
          }}
        />
      )}
    </QueryView>
  )
}

const pause = 700 // milliseconds without a change until a draft is saved

function Editor({ read, readAt, onTake }: { read: Read; readAt: number; onTake: (theirs: Read) => void }) {
  const { flow } = read
  const id = flow._id
  const { view = 'canvas', step, try: tries = false, person } = route.useSearch()
  const go = route.useNavigate()
  const navigate = useNavigate()
  const client = useQueryClient()
  const confirm = useConfirm()
  const may = useMay()
  const draft = flow.status === 'draft' && !flow.publishing
  const readOnly = !may('flows:write') || !draft
  const { value: d, edit, undo, canUndo } = useUndo(() => read.definition)
  const change = useCallback((next: Definition) => edit(() => next), [edit])
  const select = useCallback((s: string | undefined) => void go({ search: (x) => ({ ...x, step: s }), replace: true }), [go])

  // A draft is saved by itself, and then asked what it lacks.
  const now = writeJson(d)
  const [savedText, setSaved] = useState(now)
  // The version that the next save replaces; another one is somebody else's.
  const version = useRef(flow.version)
  const save = useMutation({
    mutationFn: (definition: string) => data(api.PUT('/console/api/v1/flows/{id}', { params: { path: { id }, query: { if_version: version.current } }, body: parseJson(definition) as never })),
    onSuccess: (f, definition) => {
      version.current = f.version
      setSaved(definition)
    },
  })
  const saving = useRef(save.mutateAsync)
  saving.current = save.mutateAsync
  const [overtaken, setOvertaken] = useState(false)
  const conflicting = overtaken || isConflict(save.error)
  const conflict = useQuery({
    queryKey: ['flow', id, 'conflict', save.submittedAt, overtaken],
    queryFn: async () => {
      const [theirs, versions] = await Promise.all([readFlow(id), data(api.GET('/console/api/v1/flows/{id}/versions', { params: { path: { id }, query: { limit: 1 } } }))])
      return { theirs, by: versions[0]?.by ?? null }
    },
    enabled: conflicting,
    gcTime: 0,
  })
  const other = conflicting ? conflict.data : undefined
  const failed = conflicting || (save.isError && save.variables === now)
  const busy = save.isPending
  useEffect(() => {
    if (readOnly || now === savedText || busy || failed || !d.name.trim()) return
    const timer = setTimeout(() => void saving.current(now).catch(() => {}), pause)
    return () => clearTimeout(timer)
  }, [now, savedText, readOnly, busy, failed, d.name])
  useEffect(() => () => void client.invalidateQueries({ queryKey: ['flows'] }), [client])
  const validity = useQuery({ queryKey: ['flow', id, 'validate', savedText], queryFn: () => data(api.GET('/console/api/v1/flows/{id}/validate', { params: { path: { id } } })), enabled: draft })
  const faults = useMemo(() => {
    const out = new Map<string, string[]>()
    for (const f of validity.data?.faults ?? []) out.set(f.step ?? '', [...(out.get(f.step ?? '') ?? []), `${f.path.replace(/^steps\[\d+\]\.?/, '')} ${f.message}`.trim()])
    return out
  }, [validity.data])
  const lacking = validity.data?.faults.length ?? 0

  const templates = useTemplates()
  const names = useNames()
  const template = (t: string) => templates.data?.find((x) => x._id === t)?.name
  const summaryOf = (s: string) => {
    const x = d.steps.find((y) => y.id === s)
    if (!x) return ''
    if (x.type !== 'condition' || !x.if) return summary(x, template)
    try {
      return sentence(fromJson(x.if), names) + (x.open_cart === true ? ', and has an open cart' : '')
    } catch {
      return 'a condition'
    }
  }
  const t = d.trigger
  const triggerSummary = t ? text(t.event) || names('segment', text(t.segment_id)) || names('list', text(t.list_id)) || text(t.field) : ''

  const act = useMutation({
    mutationFn: async (what: 'publish' | 'pause' | 'resume' | 'duplicate') => {
      const path = { params: { path: { id } } }
      if (what === 'publish') {
        if (now !== savedText) await save.mutateAsync(now)
        // What is published is what is shown.
        if ((await readFlow(id)).flow.version !== version.current) {
          setOvertaken(true)
          throw new Error('Somebody else changed the draft meanwhile. Look at it before it is published.')
        }
        return data(api.POST('/console/api/v1/flows/{id}/publish', path))
      }
      if (what === 'pause') return data(api.POST('/console/api/v1/flows/{id}/pause', path))
      if (what === 'resume') return data(api.POST('/console/api/v1/flows/{id}/resume', path))
      return data(api.POST('/console/api/v1/flows/{id}/duplicate', path))
    },
    onSuccess: async (f, what) => {
      await client.invalidateQueries({ queryKey: ['flows'] })
      await client.invalidateQueries({ queryKey: ['flow', id] })
      if (what === 'duplicate') await navigate({ to: '/flows/$id', params: { id: f._id } })
      else notifications.show({ message: what === 'publish' ? (f.publishing ? 'Its conditions are being built; it goes live by itself.' : `${f.name} is live.`) : what === 'pause' ? `${f.name} is paused.` : `${f.name} is resumed.` })
    },
    onError: (e) => notifications.show({ color: 'red', title: 'Something went wrong', message: messageOf(e) }),
  })
  const publish = async () => {
    const begins = t?.type === 'segment_entered' ? await data(api.GET('/console/api/v1/segments/{id}', { params: { path: { id: String(t.segment_id) } } })).catch(() => null) : undefined
    const who = begins === undefined ? '' : begins?.count == null ? ' The people in the segment begin at once.' : ` ${begins.count === 1 ? 'The person' : `The ${count(begins.count)} people`} in ${begins.name} now ${begins.count === 1 ? 'begins' : 'begin'} at once.`
    if (await confirm({ title: `Publish ${d.name}?`, body: `From then on it leads people by itself, and its steps are locked.${who}`, yes: 'Publish' })) act.mutate('publish')
  }
  const halt = async () => {
    if (await confirm({ title: `Pause ${flow.name}?`, body: `${count(flow.counts.in_progress)} people are in it. They stay where they are until you resume it; nobody new begins.`, yes: 'Pause' })) act.mutate('pause')
  }

  const [json, setJson] = useState<{ text: string; problem: { at: number; message: string } | null } | null>(null)
  const typed = json?.text ?? writeJson(d, 2)
  const readJson = (v: string) => {
    try {
      const next = checked(parseJson(v))
      setJson({ text: v, problem: null })
      if (writeJson(next) !== now) change(next)
    } catch (e) {
      setJson({ text: v, problem: { at: e instanceof JsonError ? e.at : 0, message: messageOf(e) } })
    }
  }
  const numbers = useMemo(() => (flow.status === 'draft' ? null : new Map(flow.step_counts.map((s) => [s.id, s]))), [flow])
  const chosen = d.steps.find((s) => s.id === step)
  const refused = failed && save.error && !conflicting ? (save.error instanceof ApiError && save.error.unavailable ? 'The server does not answer. ' : '') + messageOf(save.error) : ''
  return (
    <Page
      title={d.name || 'Flow'}
      wide
      aside={
        <Group gap="xs">
          <FlowStatus flow={flow} />
          <span>{draft ? (refused || conflicting ? 'not saved' : now === savedText ? 'saved' : 'saving …') : `as of ${timeOfDay(new Date(readAt).toISOString())}`}</span>
        </Group>
      }
      actions={
        <>
          {!readOnly && (
            <Button variant="default" onClick={undo} disabled={!canUndo}>
              Undo
            </Button>
          )}
          <Tooltip label={lacking > 0 ? 'First the steps must be complete' : 'It is being saved'} disabled={!draft || (lacking === 0 && now === savedText && Boolean(validity.data))}>
            <Button variant="default" leftSection={<Icon name="play" size={14} />} disabled={draft && (lacking > 0 || now !== savedText || !validity.data)} onClick={() => void go({ search: (s) => ({ ...s, try: true }) })}>
              Try it
            </Button>
          </Tooltip>
          {may('flows:write') && (
            <Button variant="default" onClick={() => act.mutate('duplicate')} leftSection={<Icon name="copy" size={14} />}>
              Duplicate
            </Button>
          )}
          {draft && may('flows:write') && (
            <Tooltip label={`${lacking} ${lacking === 1 ? 'thing is' : 'things are'} missing; they are marked at the steps`} disabled={lacking === 0}>
              <Button onClick={() => void publish()} loading={act.isPending} disabled={lacking > 0 || now !== savedText || !validity.data || conflicting}>
                Publish
              </Button>
            </Tooltip>
          )}
          {flow.status === 'live' && may('flows:write') && (
            <Button variant="default" leftSection={<Icon name="pause" size={14} />} onClick={() => void halt()}>
              Pause
            </Button>
          )}
          {flow.status === 'paused' && may('flows:write') && (
            <Button leftSection={<Icon name="play" size={14} />} onClick={() => act.mutate('resume')} loading={act.isPending}>
              Resume
            </Button>
          )}
        </>
      }
    >
      <Group mb="sm" gap="sm" align="flex-end">
        <SegmentedControl aria-label="What is shown" value={view} onChange={(v) => (setJson(null), void go({ search: (s) => ({ ...s, view: v as typeof view, ...(v === 'enrolments' && { step: undefined }) }), replace: true }))} data={[{ value: 'canvas', label: 'Steps' }, { value: 'json', label: 'JSON' }, { value: 'enrolments', label: 'Enrolments' }]} />
        {!readOnly && view !== 'enrolments' && <TextInput aria-label="Name of the flow" value={d.name} onChange={(e) => change({ ...d, name: e.currentTarget.value })} maxLength={200} flex={1} maw={340} miw={160} error={d.name.trim() ? undefined : 'Name the flow.'} data-1p-ignore />}
        {numbers && (
          <Text size="sm" c="dimmed" className="numbers" data-testid="flow-counts">
            {count(flow.counts.entered)} entered, {count(flow.counts.in_progress)} in it now, {count(flow.counts.completed)} completed, {count(flow.counts.exited)} left before
          </Text>
        )}
      </Group>
      {flow.publish_error && (
        <Alert color="red" variant="light" mb="sm" icon={<Icon name="alert" />}>
          It did not go live: {flow.publish_error}
        </Alert>
      )}
      {flow.paused_for && (
        <Alert color="yellow" variant="light" mb="sm" icon={<Icon name="alert" />}>
          The service paused it because the e-mail credits ran out.
        </Alert>
      )}
      {conflict.error && <Failed error={conflict.error} retry={() => void conflict.refetch()} />}
      {other && (
        <Conflict
          other={{ version: other.theirs.flow.version, by: other.by, at: other.theirs.flow.updated_at, mine: writeJson(d, 2), theirs: writeJson(other.theirs.definition, 2) }}
          onTake={() => onTake(other.theirs)}
          onOverwrite={() => {
            version.current = other.theirs.flow.version
            setOvertaken(false)
            save.mutate(now)
          }}
          busy={busy}
        />
      )}
      {refused && (
        <Alert role="alert" color="red" variant="light" mb="sm" icon={<Icon name="alert" />}>
          {refused}
        </Alert>
      )}
      {!draft && view === 'canvas' && (
        <Text size="xs" c="dimmed" mb="xs">
          What was published is locked: duplicate it to change it.
        </Text>
      )}
      <DryRun
        id={id}
        version={version.current}
        person={person}
        opened={tries}
        onPerson={(p) => void go({ search: (s) => ({ ...s, person: p }), replace: true })}
        onStep={(s) => void go({ search: (x) => ({ ...x, view: undefined, step: s, try: undefined }), replace: true })}
        onClose={() => void go({ search: (s) => ({ ...s, try: undefined, person: undefined }), replace: true })}
      />
      {view === 'enrolments' && <Enrolments id={id} step={step} steps={d.steps.map((s) => ({ id: s.id, name: stepNames[s.type] ?? s.type }))} onStep={select} />}
      {view === 'json' && (
        <Paper withBorder p="md">
          <Code language="json" label="Flow as JSON" value={typed} onChange={readJson} readOnly={readOnly} problem={json?.problem} minHeight={320} />
          {json?.problem && (
            <Text role="alert" size="sm" c="var(--mantine-color-error)" mt="xs">
              {json.problem.message}
            </Text>
          )}
        </Paper>
      )}
      {view === 'canvas' && (
        <Box className="beside">
          <Paper withBorder miw={0} style={{ overflow: 'hidden' }}>
            <Suspense fallback={<Skeleton h={420} />}>
              <Canvas
                d={d}
                selected={step}
                onSelect={select}
                faults={faults}
                numbers={numbers}
                summaryOf={summaryOf}
                triggerSummary={triggerSummary}
                onInsert={
                  readOnly
                    ? undefined
                    : (from, key, type) => {
                        const out = insert(d, from, key, type)
                        change(out.d)
                        select(out.id)
                      }
                }
              />
            </Suspense>
          </Paper>
          <Paper withBorder p="md" miw={0} component="section" aria-label="The chosen step" className={readOnly ? 'locked' : undefined}>
            {step === 'trigger' ? (
              <TriggerPanel d={d} edit={change} faults={faults.get('') ?? []} readOnly={readOnly} />
            ) : chosen ? (
              <>
                <StepPanel key={chosen.id} d={d} step={chosen} set={(s) => change(replace(d, chosen.id, s))} onRemove={() => (change(remove(d, chosen.id)), select(undefined))} faults={faults.get(chosen.id) ?? []} numbers={numbers?.get(chosen.id)} readOnly={readOnly} />
                {numbers && (
                  <Box mt="md">
                    <HereNow id={id} step={chosen.id} />
                  </Box>
                )}
              </>
            ) : (
              <Text size="sm" c="dimmed">
                Choose a step to see what it does{readOnly ? ' and who is there' : ', or a plus to put one there'}.
              </Text>
            )}
          </Paper>
        </Box>
      )}
      {view === 'canvas' && !draft && <FlowRevenue id={id} />}
    </Page>
  )
}
