import { ActionIcon, Alert, Box, Button, Group as Row, Menu, Paper, SegmentedControl, Text, TextInput, Tooltip, VisuallyHidden } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useHotkeys } from '@mantine/hooks'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useBlocker, useNavigate } from '@tanstack/react-router'
import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { api, data } from '@/shared/api/client'
import { ApiError, messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { Code } from '@/shared/Code'
import { Conflict, isConflict, type Other } from '@/shared/Conflict'
import { useConfirm } from '@/shared/confirm'
import { curl } from '@/shared/curl'
import { count } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { JsonError, parseJson, writeJson } from '@/shared/json'
import { ButtonLink, MenuLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { useLeaving } from '@/shared/useLeaving'
import { check } from './check'
import { BuilderContext, type Builder as Shared } from './context'
import { asGroup, DefinitionError, fromJson, toJson } from './definition'
import { ExplainDrawer } from './ExplainDrawer'
import { faultWords } from './faultWords'
import type { Group } from './model'
import { GroupView } from './NodeView'
import { PreviewPanel, TotalBar } from './PreviewPanel'
import { readSegment } from './readSegment'
import { sentence } from './sentence'
import { placed } from './tree'
import { countsOf, usePreview } from './usePreview'
import { useNames } from './useSuggestions'
import { useUndo } from './useUndo'

interface Props {
  name: string
  first: () => Group
  /** The segment that is edited; text is its definition as JSON. */
  saved?: { id: string; name: string; text: string; version: string }
  /** Begins anew with what is saved. */
  onTake?: () => Promise<void>
  view: 'form' | 'json'
  /** Keeps in the address what is shown, so that it can be shared and survives loading the page anew. */
  keep: (next: { view?: 'form' | 'json'; definition?: string }) => void
}

const inAddress = 6000 // characters of a definition that an address holds

/** Edits a definition as sentences or as JSON, with the exact numbers beside it. */
export function Builder({ name: firstName, first, saved, onTake, view, keep }: Props) {
  const { value: root, edit, undo, redo, canUndo, canRedo } = useUndo(first)
  const [name, setName] = useState(firstName)
  const [dragging, setDragging] = useState<string | null>(null)
  const [person, setPerson] = useState<string | null>(null)
  const [json, setJson] = useState<{ text: string; problem: { at: number; message: string } | null } | null>(null)
  const may = useMay()
  const names = useNames()

  const problems = useMemo(() => check(root), [root])
  const text = useMemo(() => writeJson(toJson(root)), [root])
  const complete = problems.size === 0 && !json?.problem
  const preview = usePreview(root, complete ? text : null, saved?.id ?? '')
  const answer = preview.data?.answer
  const stale = preview.data !== undefined && preview.data.text !== text
  const counts = useMemo(() => countsOf(root, text, preview.data), [root, text, preview.data])
  const refused = preview.error instanceof ApiError && preview.error.field.startsWith('definition') ? preview.error.message : ''

  const said = useMemo(() => {
    const out: Shared['said'] = new Map()
    const add = (message: string, is: boolean) => {
      const p = placed(root, message)
      if (p.node && p.node.id !== root.id) out.set(p.node.id, { ...faultWords(p.text), refused: is })
    }
    if (!stale) answer?.warnings.forEach((w) => add(w, false))
    if (refused) add(refused, true)
    return out
  }, [root, answer, refused, stale])
  const refusedElsewhere = refused && ![...said.values()].some((s) => s.refused) ? faultWords(placed(root, refused).text).text : ''

  // What is typed is in the address a little later: not with every key, and not once the
  // way leads to another page, of which this one is shown until it is loaded.
  const leaving = useLeaving()
  const keeping = useRef(keep)
  keeping.current = keep
  const pristine = useRef(text)
  useEffect(() => {
    if (text === pristine.current) return
    const timer = setTimeout(() => {
      if (leaving()) return
      pristine.current = ''
      keeping.current({ definition: text.length <= inAddress ? text : undefined })
    }, 400)
    return () => clearTimeout(timer)
  }, [text, leaving])

  useHotkeys([['mod+Z', () => undo()], ['mod+shift+Z', () => redo()]], [])

  const wanted = useRef<string | null>(null)
  const focus = useCallback((id: string) => (wanted.current = id), [])
  useEffect(() => {
    const id = wanted.current
    if (!id) return
    wanted.current = null
    const card = document.getElementById(`node-${id}`)
    // A new condition is filled in at once; one that was moved can be moved on.
    const input = card?.querySelector<HTMLElement>('input:placeholder-shown')
    ;(input ?? card)?.focus()
  }, [root])

  const shared: Shared = { root, edit, problems, said, counts, stale, segmentId: saved?.id ?? '', dragging, setDragging, focus }

  const changed = (saved ? text !== writeJson(toJson(asGroup(fromJson(parseJson(saved.text))))) : canUndo) || name !== firstName
  const save = useSave({ root, name, saved, answer: stale ? undefined : answer })
  useBlocker({
    shouldBlockFn: ({ current, next }) => changed && !save.done.current && current.pathname !== next.pathname && !window.confirm('Leave without saving? What you changed is lost.'),
    enableBeforeUnload: false,
  })

  const showJson = () => {
    setJson({ text: writeJson(toJson(root), 2), problem: null })
    keep({ view: 'json' })
  }
  const readJson = (typed: string) => {
    try {
      const next = asGroup(fromJson(parseJson(typed)))
      setJson({ text: typed, problem: null })
      if (writeJson(toJson(next)) !== text) edit(() => next)
    } catch (e) {
      if (!(e instanceof JsonError || e instanceof DefinitionError)) throw e
      setJson({ text: typed, problem: { at: e instanceof JsonError ? e.at : 0, message: e.message } })
    }
  }
  useEffect(() => {
    if (view === 'json' && json === null) setJson({ text: writeJson(toJson(root), 2), problem: null })
    if (view === 'form' && json !== null && !json.problem) setJson(null)
  }, [view, json, root])

  const unready = !may('segments:write')
    ? 'You need the permission segments:write'
    : !complete
      ? 'Complete the definition first'
      : refused
        ? 'The server refuses the definition'
        : saved && !changed
          ? 'Nothing is changed'
          : ''
  const command = curl('POST', '/api/v1/segments/preview', writeJson({ definition: toJson(root) }, 2))
  const actions: ReactNode = (
    <>
      <Tooltip label="Undo (Ctrl Z)">
        <ActionIcon variant="default" size={36} aria-label="Undo" onClick={undo} disabled={!canUndo}>
          <Icon name="undo" />
        </ActionIcon>
      </Tooltip>
      {canRedo && (
        <Button variant="default" onClick={redo}>
          Redo
        </Button>
      )}
      {saved && (
        <ButtonLink to="/segments/$id" params={{ id: saved.id }} variant="default" leftSection={<Icon name="users" size={14} />}>
          Members
        </ButtonLink>
      )}
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" size={36} aria-label="More actions">
            <Icon name="dots" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<Icon name="code" size={14} />} onClick={() => void copyText(command, 'The command is copied. Set API_KEY to a key with segments:read.')}>
            Copy as curl
          </Menu.Item>
          <Menu.Item leftSection={<Icon name="copy" size={14} />} onClick={() => void copyText(window.location.href, 'The link is copied. It has your unsaved changes.')}>
            Copy a link to this
          </Menu.Item>
          {saved && (
            <MenuLink to="/segments/new" search={{ copy: saved.id }} leftSection={<Icon name="copy" size={14} />}>
              Duplicate
            </MenuLink>
          )}
        </Menu.Dropdown>
      </Menu>
      <Tooltip label={unready} disabled={unready === ''}>
        <span>
          <Button onClick={() => void save.ask()} loading={save.pending} disabled={unready !== ''} aria-describedby={unready ? 'why-not-saved' : undefined}>
            {saved ? 'Save' : 'Save the segment'}
          </Button>
          <VisuallyHidden id="why-not-saved">{unready}</VisuallyHidden>
        </span>
      </Tooltip>
    </>
  )

  return (
    <BuilderContext.Provider value={shared}>
      <Page title={saved ? saved.name : 'New segment'} aside={!saved ? undefined : changed ? 'not saved yet' : 'saved, nothing is changed'} actions={actions} wide>
        {save.conflict.data && <Conflict other={save.conflict.data} onTake={() => void onTake?.()} onOverwrite={() => save.over(save.conflict.data!.version)} busy={save.pending} />}
        <Box className="beside">
          <Box miw={0}>
            <Paper withBorder p="md">
              <Row justify="space-between" align="flex-end" mb="md" gap="sm">
                <TextInput label="Name" value={name} onChange={(e) => setName(e.currentTarget.value)} maxLength={200} error={save.nameError || undefined} flex={1} maw={420} miw={180} autoComplete="off" data-1p-ignore />
                <SegmentedControl
                  size="xs"
                  value={view}
                  onChange={(v) => (v === 'json' ? showJson() : keep({ view: undefined }))}
                  data={[
                    { value: 'form', label: 'Form', disabled: Boolean(json?.problem) },
                    { value: 'json', label: 'JSON' },
                  ]}
                  aria-label="How the definition is shown"
                />
              </Row>
              {view === 'json' ? (
                <>
                  <Code language="json" label="Definition as JSON" value={json?.text ?? ''} onChange={readJson} problem={json?.problem} minHeight={280} />
                  {json?.problem && (
                    <Text role="alert" size="sm" c="var(--mantine-color-error)" mt="xs">
                      {json.problem.message}
                    </Text>
                  )}
                </>
              ) : (
                <GroupView group={root} path="" />
              )}
              {refusedElsewhere && (
                <Alert role="alert" color="red" variant="light" mt="sm" icon={<Icon name="alert" />}>
                  {refusedElsewhere}
                </Alert>
              )}
              {save.error && (
                <Alert role="alert" color="red" variant="light" mt="sm" icon={<Icon name="alert" />}>
                  {save.error}
                </Alert>
              )}
            </Paper>
            {view === 'form' && problems.size === 0 && (
              <Text size="sm" c="dimmed" mt="sm" px="xs">
                {root.conditions.length > 0 ? `In words: ${sentence(root, names)}.` : ''}
              </Text>
            )}
          </Box>
          <TotalBar answer={answer} stale={stale} />
          <PreviewPanel query={preview} answer={answer} stale={stale} incomplete={!complete} refused={Boolean(refused)} onPerson={setPerson} />
        </Box>
      </Page>
      <ExplainDrawer root={root} text={complete ? text : null} profileId={person} onClose={() => setPerson(null)} />
    </BuilderContext.Provider>
  )
}

async function copyText(text: string, said: string) {
  await navigator.clipboard.writeText(text)
  notifications.show({ message: said })
}

/** Saving: it asks first what will change, and says afterwards what did. */
function useSave({ root, name, saved, answer }: { root: Group; name: string; saved: Props['saved']; answer: { count: number; entering?: number; leaving?: number } | undefined }) {
  const client = useQueryClient()
  const navigate = useNavigate()
  const confirm = useConfirm()
  const done = useRef(false)
  const [nameError, setNameError] = useState('')
  const uses = useQuery({ queryKey: ['segment', saved?.id, 'used-in'], queryFn: () => data(api.GET('/console/api/v1/segments/{id}/used-in', { params: { path: { id: saved!.id } } })), enabled: saved !== undefined })
  const save = useMutation({
    mutationFn: (over?: string) => {
      const body = { name: name.trim(), definition: toJson(root) as never }
      return saved ? data(api.PUT('/console/api/v1/segments/{id}', { params: { path: { id: saved.id }, query: { if_version: over ?? saved.version } }, body })) : data(api.POST('/console/api/v1/segments', { body }))
    },
    onSuccess: async (s) => {
      done.current = true
      await client.invalidateQueries({ queryKey: ['segments'] })
      client.removeQueries({ queryKey: ['segment', s._id] })
      notifications.show({ title: `${s.name} is saved`, message: s.count == null ? 'It is being built; the counts are exact meanwhile.' : `It has ${count(s.count)} ${s.count === 1 ? 'member' : 'members'} and is kept up to date from now on.` })
      // Where its count, its members and what it is used in are.
      await navigate({ to: '/segments/$id', params: { id: s._id } })
    },
    onError: (e) => {
      if (e instanceof ApiError && e.field === 'name') setNameError(e.message)
    },
  })
  const ask = async () => {
    if (name.trim() === '') {
      setNameError('Name the segment.')
      return
    }
    setNameError('')
    const used = (uses.data ?? []).map((u) => `${u.kind} ${u.name}`)
    const yes = await confirm({
      title: saved ? `Save ${name.trim()}?` : `Save the segment ${name.trim()}?`,
      yes: 'Save',
      body: <WhatChanges answer={answer} saved={saved !== undefined} used={used} />,
    })
    if (yes) save.mutate(undefined)
  }
  const mine = writeJson({ name: name.trim(), definition: toJson(root) }, 2)
  const conflict = useQuery({
    queryKey: ['segment', saved?.id, 'conflict', save.submittedAt],
    queryFn: async (): Promise<Other> => {
      const [theirs, versions] = await Promise.all([readSegment(saved!.id), data(api.GET('/console/api/v1/segments/{id}/versions', { params: { path: { id: saved!.id }, query: { limit: 1 } } }))])
      return { version: theirs.version, by: versions[0]?.by ?? null, at: theirs.updated_at, mine, theirs: writeJson({ name: theirs.name, definition: theirs.definition }, 2) }
    },
    enabled: saved !== undefined && isConflict(save.error),
    gcTime: 0,
  })
  const failure = conflict.error ?? (isConflict(save.error) ? null : save.error)
  const error = failure && !(failure instanceof ApiError && failure.field === 'name') ? messageOf(failure) : ''
  return { ask, over: save.mutate, conflict: { data: isConflict(save.error) && conflict.data ? { ...conflict.data, mine } : undefined }, pending: save.isPending, error, nameError, done }
}

function WhatChanges({ answer, saved, used }: { answer: { count: number; entering?: number; leaving?: number } | undefined; saved: boolean; used: string[] }) {
  if (!answer) return <>The numbers are not known yet.</>
  const people = (n: number | undefined, verb: string) => (
    <>
      <b>{count(n ?? 0)}</b> {n === 1 ? 'person' : 'people'} {verb}
    </>
  )
  return (
    <>
      {saved && answer.entering !== undefined ? (
        <>
          {people(answer.entering, answer.entering === 1 ? 'enters' : 'enter')}, {people(answer.leaving, answer.leaving === 1 ? 'leaves' : 'leave')}; it then has {count(answer.count)}.
        </>
      ) : (
        <>{people(answer.count, answer.count === 1 ? 'is in it' : 'are in it')} now. People enter by themselves when they come to meet the conditions, and leave when they no longer do.</>
      )}
      {used.length > 0 && (
        <Text size="sm" mt="xs">
          It is used in {used.join(', ')}. {(answer.entering ?? 0) > 0 && used.some((u) => u.startsWith('flow')) ? 'A flow that this segment starts enrols who enters.' : ''}
        </Text>
      )}
    </>
  )
}
