import { Box, Button, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, data } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { count, instant } from '@/shared/format'
import { writeJson } from '@/shared/json'
import { ButtonLink } from '@/shared/links'
import { Lines } from '@/shared/Lines'
import { Failed, QueryView } from '@/shared/states'
import { fromJson } from '../segments/definition'
import { sentence } from '../segments/sentence'
import { useNames } from '../segments/useSuggestions'
import { useVersions, type Segment, type Version } from './useSegment'

/** The definitions that the segment had, and what each would change if it came back. */
export function Versions({ segment, chosen, onChoose }: { segment: Segment; chosen: number | undefined; onChoose: (version: number | undefined) => void }) {
  const versions = useVersions(segment._id)
  const names = useNames()
  const words = (v: Version) => {
    if (v.definition === null) return 'The definition was too long to be kept.'
    try {
      return sentence(fromJson(v.definition), names)
    } catch {
      return 'A definition that can only be shown as JSON.'
    }
  }
  return (
    <QueryView query={versions} what="the versions">
      {(list) =>
        list.length === 0 ? (
          <Text size="sm" c="dimmed">
            The audit log keeps the newest 2,000 changes of an account, and this segment was changed before them.
          </Text>
        ) : (
          <Stack gap="sm">
            {list.map((v, i) => {
              const before = list[i + 1]
              const open = chosen === v._id
              return (
                <Paper key={v._id} withBorder p="sm" data-testid="version">
                  <Group justify="space-between" align="flex-start" wrap="nowrap" gap="sm">
                    <Box miw={0}>
                      <Text size="sm" fw={600}>
                        {v.name}
                        {i === 0 && (
                          <Text span size="xs" c="dimmed" fw={400}>
                            {' '}
                            present version
                          </Text>
                        )}
                      </Text>
                      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                        {words(v)}
                      </Text>
                      <Text size="xs" c="dimmed">
                        {instant(v.at)}, by {v.by.name || 'a deleted user'}
                        {v.by.kind === 'key' && ' (API key)'}
                      </Text>
                    </Box>
                    <Button size="compact-xs" variant="default" aria-expanded={open} onClick={() => onChoose(open ? undefined : v._id)} style={{ flex: 'none' }}>
                      Difference
                    </Button>
                  </Group>
                  {open && (
                    <Stack gap="sm" mt="sm">
                      {i > 0 && v.definition !== null && <Members segment={segment} version={v} />}
                      <Title order={3} size="h5">
                        {before ? `Against the version of ${instant(before.at)}` : 'The first version that is known'}
                      </Title>
                      <Lines before={before?.definition === undefined ? '' : writeJson(before.definition, 2)} after={writeJson(v.definition, 2)} />
                    </Stack>
                  )}
                </Paper>
              )
            })}
          </Stack>
        )
      }
    </QueryView>
  )
}

/** Whom the version would hold now, beside the members of the present one. */
function Members({ segment, version }: { segment: Segment; version: Version }) {
  const may = useMay()
  const preview = useQuery({
    queryKey: ['segment', segment._id, 'version', version._id],
    queryFn: ({ signal }) => data(api.POST('/console/api/v1/segments/preview', { body: { definition: version.definition as never, segment_id: segment._id }, signal })),
  })
  return (
    <Group justify="space-between" align="center" gap="sm">
      {preview.isError ? (
        <Failed error={preview.error} retry={() => void preview.refetch()} />
      ) : (
        <Text size="sm" data-testid="version-members">
          {preview.data ? (
            <>
              It would have <b>{count(preview.data.count)}</b> members now: <b>{count(preview.data.entering ?? 0)}</b> would enter, <b>{count(preview.data.leaving ?? 0)}</b> would leave.
            </>
          ) : (
            'Counting …'
          )}
        </Text>
      )}
      <Group gap="xs">
        {preview.data && <AsOf at={preview.data.as_of} />}
        {may('segments:write') && (
          <ButtonLink size="compact-xs" variant="default" to="/segments/$id/edit" params={{ id: segment._id }} search={{ definition: writeJson(version.definition) }}>
            Edit from here
          </ButtonLink>
        )}
      </Group>
    </Group>
  )
}
