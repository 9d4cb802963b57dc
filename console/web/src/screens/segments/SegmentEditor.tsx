import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay } from '@/shared/api/session'
import { parseJson, writeJson } from '@/shared/json'
import { NoPermission, QueryView } from '@/shared/states'
import { Builder } from './Builder'
import { asGroup, fromJson } from './definition'
import { newDefinition, type Group } from './model'
import { readSegment } from './readSegment'

const fresh = getRouteApi('/shell/segments/new')
const edit = getRouteApi('/shell/segments/$id/edit')

function useSegment(id: string | undefined) {
  return useQuery({
    queryKey: ['segment', id, 'exact'],
    queryFn: ({ signal }) => readSegment(id!, signal),
    enabled: id !== undefined,
    refetchOnWindowFocus: false,
    staleTime: Infinity,
    gcTime: 0,
  })
}

/** The definition in an address; null where it has none that can be read. */
function inAddress(text: string | undefined): Group | null {
  try {
    return text ? asGroup(fromJson(parseJson(text))) : null
  } catch {
    return null
  }
}

/** /segments/new */
export function NewSegment() {
  const search = fresh.useSearch()
  const navigate = fresh.useNavigate()
  const from = useSegment(search.copy)
  const may = useMay()
  const [begun] = useState(() => inAddress(search.definition))
  if (!may('segments:read')) return <NoPermission permission="segments:read" />
  const view = search.view ?? 'form'
  const keep = (next: { view?: 'form' | 'json'; definition?: string }) => void navigate({ search: (s) => ({ ...s, ...next, ...(next.definition !== undefined && { copy: undefined }) }), replace: true })
  if (search.copy && !begun)
    return (
      <QueryView query={from} what="the segment">
        {(s) => <Builder name={`Copy of ${s.name}`} first={() => asGroup(fromJson(s.definition))} view={view} keep={keep} />}
      </QueryView>
    )
  return <Builder name={search.name ?? ''} first={() => begun ?? newDefinition()} view={view} keep={keep} />
}

/** /segments/$id/edit */
export function EditSegment() {
  const { id } = edit.useParams()
  const search = edit.useSearch()
  const navigate = edit.useNavigate()
  const segment = useSegment(id)
  const client = useQueryClient()
  const [begun, setBegun] = useState(() => inAddress(search.definition))
  const [taken, setTaken] = useState(0)
  return (
    <QueryView query={segment} what="the segment">
      {(s) => (
        <Builder
          key={`${s._id} ${taken}`}
          name={s.name}
          saved={{ id: s._id, name: s.name, text: writeJson(s.definition), version: s.version }}
          onTake={async () => {
            await client.fetchQuery({ queryKey: ['segment', id, 'exact'], queryFn: () => readSegment(id), staleTime: 0 })
            setBegun(null)
            setTaken(taken + 1)
            await navigate({ search: (x) => ({ ...x, definition: undefined }), replace: true })
          }}
          first={() => begun ?? asGroup(fromJson(s.definition))}
          view={search.view ?? 'form'}
          keep={(next) => void navigate({ search: (x) => ({ ...x, ...next }), replace: true })}
        />
      )}
    </QueryView>
  )
}
