import { Button } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useMay } from '@/shared/api/session'
import { Icon } from '@/shared/icons'
import { Page } from '@/shared/Page'
import { Empty, NoPermission } from '@/shared/states'
import { useSegments } from '../segments/useSuggestions'
import { AddPerson } from './AddPerson'
import { PeopleBrowser } from './PeopleBrowser'

const route = getRouteApi('/shell/people')

/** /people: everybody, by search and filters. */
export function PeopleList() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const may = useMay()
  const segments = useSegments()
  if (!may('contacts:read')) return <NoPermission permission="contacts:read" />
  const segment = search.segment && !search.list ? segments.data?.find((s) => s._id === search.segment) : undefined
  const adding = (open: boolean) => void navigate({ search: (s) => ({ ...s, add: open ? ('person' as const) : undefined }) })
  return (
    <Page
      title="People"
      actions={
        <>
          <Button component="a" variant="default" href={segment ? `/console/api/v1/export/segments/${segment._id}` : '/console/api/v1/export/profiles'} download={`${segment ? segment.name : 'people'}.ndjson`} leftSection={<Icon name="download" size={14} />}>
            {segment ? `Export ${segment.name}` : 'Export everybody'}
          </Button>
          {may('contacts:write') && (
            <Button leftSection={<Icon name="plus" size={14} />} onClick={() => adding(true)}>
              Add a person
            </Button>
          )}
        </>
      }
    >
      <PeopleBrowser
        label="People"
        search={search}
        onSearch={(change) => void navigate({ search: (s) => ({ ...s, ...change }), replace: true })}
        count={segment && segment.count !== null ? { n: segment.count, at: segment.as_of } : undefined}
        empty={
          <Empty icon="users" title="There is nobody yet">
            People appear with the first event that names an e-mail, an external id or a phone number, or with a contact that you add.
          </Empty>
        }
      />
      <AddPerson opened={search.add === 'person'} onClose={() => adding(false)} />
    </Page>
  )
}
