import { Alert, Badge, Button, FileInput, Group, Modal, Progress, Radio, Stack, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, data, whole, type Schemas } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { count, short } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { ListTable, oneLine, type Column } from '@/shared/ListTable'
import { Page } from '@/shared/Page'
import { Empty, Failed, Loading } from '@/shared/states'
import { partsOf } from './parts'

export type Import = Schemas['Import']

/** How an import stands, in words. */
export const words: Record<Import['status'], string> = { receiving: 'being uploaded', ready: 'to be started', queued: 'in the queue', running: 'running', done: 'done', cancelled: 'cancelled', failed: 'failed' }

export const colours: Record<Import['status'], string> = { receiving: 'gray.7', ready: 'gray.7', queued: 'gray.7', running: 'cyan.9', done: 'teal.9', cancelled: 'gray.7', failed: 'red.9' }

/** There is no stream of an import's progress, so it is read again while it goes on. */
export const goesOn = (i: Import | undefined) => i?.status === 'queued' || i?.status === 'running'
export const again = 1000 // milliseconds

const columns: Column<Import>[] = [
  {
    title: 'File',
    cell: (i) => (
      <>
        <AnchorLink to="/imports/$id" params={{ id: i._id }} size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
          {i.name}
        </AnchorLink>
        <Text size="xs" c="dimmed">
          {i.kind}
        </Text>
      </>
    ),
  },
  {
    title: 'Status',
    cell: (i) => (
      <Badge color={colours[i.status]} variant="filled" tt="none">
        {words[i.status]}
      </Badge>
    ),
  },
  { title: 'Rows', right: true, cell: (i) => (i.rows == null ? '–' : count(i.rows)) },
  { title: 'Stored', right: true, cell: (i) => count(i.taken) },
  { title: 'Refused', right: true, cell: (i) => count(i.refused) },
  { title: 'Uploaded', td: () => oneLine, cell: (i) => short(i.created_at, Date.now()) },
]

/** /imports: uploaded files and how they fared. */
export function Imports() {
  const may = useMay()
  const [uploading, setUploading] = useState(false)
  const list = useInfiniteQuery({
    queryKey: ['imports'],
    queryFn: ({ pageParam, signal }) => whole(api.GET('/console/api/v1/imports', { params: { query: { limit: 50, cursor: pageParam } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (p) => p.next ?? undefined,
    refetchInterval: (q) => (q.state.data?.pages.some((p) => p.data.some(goesOn)) ? again : false),
  })
  const all = list.data?.pages.flatMap((p) => p.data) ?? []
  const upload = may('contacts:write') && (
    <Button onClick={() => setUploading(true)} leftSection={<Icon name="upload" size={14} />}>
      Upload a CSV file
    </Button>
  )
  return (
    <Page title="Imports" actions={upload}>
      {list.isError && <Failed error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && <Loading what="the imports" />}
      {list.isSuccess && all.length === 0 && (
        <Empty icon="upload" title="Nothing was imported yet" action={upload}>
          Bring in people, or past events, from a CSV file. You see what each column becomes before anything is stored.
        </Empty>
      )}
      {all.length > 0 && (
        <ListTable label="Table of imports" minWidth={520} columns={columns} rows={all} />
      )}
      {list.hasNextPage && (
        <Button mt="sm" variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Show older ones
        </Button>
      )}
      {uploading && <Upload onClose={() => setUploading(false)} />}
    </Page>
  )
}

function Upload({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate()
  const [file, setFile] = useState<File | null>(null)
  const [kind, setKind] = useState<'people' | 'events'>('people')
  const [sent, setSent] = useState<number | null>(null)
  const [wrong, setWrong] = useState('')
  const send = async () => {
    if (!file) return
    setWrong('')
    setSent(0)
    try {
      let made: Import | undefined
      for await (const p of partsOf(file)) {
        made = made
          ? await data(api.POST('/console/api/v1/imports/{id}/parts', { params: { path: { id: made._id } }, body: p }))
          : await data(api.POST('/console/api/v1/imports', { body: { name: file.name, kind, text: p.text, more: p.more } }))
        setSent(made.bytes)
      }
      void navigate({ to: '/imports/$id', params: { id: made!._id } })
    } catch (e) {
      setWrong(messageOf(e))
      setSent(null)
    }
  }
  return (
    <Modal opened onClose={onClose} title="Upload a CSV file">
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void send()
        }}
      >
        <Stack>
          <FileInput label="File" description="CSV in UTF-8; its first row names the columns." placeholder="Choose a file" accept=".csv,text/csv" value={file} onChange={setFile} required />
          <Radio.Group label="A row is" value={kind} onChange={(v) => setKind(v as typeof kind)}>
            <Group mt={4}>
              <Radio value="people" label="a person" />
              <Radio value="events" label="an event of the past" />
            </Group>
          </Radio.Group>
          {sent !== null && file && <Progress value={(sent / Math.max(1, file.size)) * 100} aria-label="Uploaded" />}
          {wrong && (
            <Alert role="alert" color="red" variant="light" icon={<Icon name="alert" />}>
              {wrong}
            </Alert>
          )}
          <Text size="xs" c="dimmed">
            Nothing is stored yet: next you see what each column becomes.
          </Text>
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={sent !== null} disabled={!file}>
              Upload
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
