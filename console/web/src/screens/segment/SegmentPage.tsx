import { Badge, Box, Button, Group, Progress, Stack, Tabs, Text } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { count } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { parseJson, writeJson } from '@/shared/json'
import { ButtonLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { PersonSearch } from '@/shared/PersonSearch'
import { Empty, NoPermission, QueryView } from '@/shared/states'
import { PeopleBrowser } from '../people/PeopleBrowser'
import { fromJson } from '../segments/definition'
import { sentence, type Names } from '../segments/sentence'
import { useNames } from '../segments/useSuggestions'
import { Compare } from './Compare'
import { Overview } from './Overview'
import { useSegmentRecord, type Segment } from './useSegment'
import { Versions } from './Versions'

const route = getRouteApi('/shell/segments/$id')

const tabs = { overview: 'Overview', members: 'Members', versions: 'Versions', compare: 'Compare' } as const

/** /segments/$id: one segment, now and over time. */
export function SegmentPage() {
  const { id } = route.useParams()
  const may = useMay()
  const segment = useSegmentRecord(id)
  if (!may('segments:read')) return <NoPermission permission="segments:read" />
  return (
    <QueryView query={segment} what="the segment">
      {(s) => <View key={s._id} segment={s} />}
    </QueryView>
  )
}

function inWords(s: Segment, names: Names): string {
  try {
    return sentence(fromJson(parseJson(writeJson(s.definition))), names)
  } catch {
    return ''
  }
}

function View({ segment }: { segment: Segment }) {
  const { tab = 'overview', by, with: other, at, version, ...people } = route.useSearch()
  const navigate = route.useNavigate()
  const go = useNavigate()
  const may = useMay()
  const names = useNames()
  const keep = (change: object) => void navigate({ search: (s) => ({ ...s, ...change }), replace: true })
  return (
    <Page
      title={segment.name}
      aside={
        <Group gap="xs" align="baseline">
          <Text fz="h3" fw={700} c="var(--mantine-color-text)" className="numbers" data-testid="count" aria-live="polite">
            {segment.count === null ? '–' : count(segment.count)}
          </Text>
          {segment.count === 1 ? 'member' : 'members'} <AsOf at={segment.as_of} />
          {segment.status === 'building' && (
            <Group gap={6} wrap="nowrap">
              <Badge size="sm" variant="filled" color="gray.7" tt="none">
                being built
              </Badge>
              <Progress w={80} size={6} value={segment.progress * 100} aria-label="Built" />
            </Group>
          )}
        </Group>
      }
      actions={
        <>
          {may('contacts:read') && (
            <Button component="a" variant="default" href={`/console/api/v1/export/segments/${encodeURIComponent(segment._id)}`} download={`${segment.name}.ndjson`} leftSection={<Icon name="download" size={14} />}>
              Export members
            </Button>
          )}
          <ButtonLink to="/segments/$id/edit" params={{ id: segment._id }} leftSection={<Icon name="edit" size={14} />}>
            {may('segments:write') ? 'Edit' : 'Definition'}
          </ButtonLink>
        </>
      }
    >
      <Stack gap="md">
        <Group justify="space-between" align="flex-start" gap="md">
          <Text size="sm" c="dimmed" flex="1 1 320px" style={{ overflowWrap: 'anywhere' }}>
            {inWords(segment, names)}
          </Text>
          <Box flex="0 1 280px">
            <PersonSearch label="Why is somebody in it, or not?" onChoose={(id) => void go({ to: '/people/$id', params: { id }, search: { tab: 'segments', why: segment._id } })} />
          </Box>
        </Group>
        <Tabs value={tab} onChange={(t) => void navigate({ search: { tab: t === 'overview' ? undefined : (t as keyof typeof tabs) } })} keepMounted={false}>
          <Tabs.List mb="md">
            {Object.entries(tabs).map(([key, label]) => (
              <Tabs.Tab key={key} value={key}>
                {label}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          <Tabs.Panel value="overview">
            <Overview segment={segment} by={by} onBy={(by) => keep({ by })} />
          </Tabs.Panel>
          <Tabs.Panel value="members">
            <PeopleBrowser
              label="Members"
              search={people}
              onSearch={keep}
              fixed={{ segment: segment._id }}
              count={segment.count === null ? undefined : { n: segment.count, at: segment.as_of }}
              maxHeight="calc(100vh - 340px)"
              empty={
                <Empty icon="users" title="Nobody is in this segment">
                  People enter as soon as they match the conditions.
                </Empty>
              }
              renderAction={(id, name) => (
                <ButtonLink to="/people/$id" params={{ id }} search={{ tab: 'segments', why: segment._id }} size="compact-xs" variant="default" aria-label={`Why is ${name} in it?`}>
                  Why?
                </ButtonLink>
              )}
            />
          </Tabs.Panel>
          <Tabs.Panel value="versions">
            <Versions segment={segment} chosen={version} onChoose={(version) => keep({ version })} />
          </Tabs.Panel>
          <Tabs.Panel value="compare">
            <Compare segment={segment} other={other} at={at} onChange={keep} />
          </Tabs.Panel>
        </Tabs>
      </Stack>
    </Page>
  )
}
