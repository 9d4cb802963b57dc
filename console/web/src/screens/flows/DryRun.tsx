import { Alert, Badge, Box, Drawer, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, data, type Schemas } from '@/shared/api/client'
import { AsOf } from '@/shared/AsOf'
import { instant } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { PersonPicker } from '@/shared/PersonPicker'
import { Failed, Loading } from '@/shared/states'
import { ExplainedTree } from '../segments/ExplainDrawer'
import { useNames } from '../segments/useSuggestions'
import { resultInWords } from './dryWords'
import { stepNames } from './model'

type Run = Schemas['DryRun']

/** What a flow would do with one person who began now. Nothing is sent. */
export function DryRun({ id, version, person, onPerson, onStep, opened, onClose }: { id: string; version: string; person: string | undefined; onPerson: (id: string) => void; onStep: (step: string) => void; opened: boolean; onClose: () => void }) {
  const run = useQuery({
    queryKey: ['flow', id, 'dry-run', version, person],
    queryFn: ({ signal }) => data(api.POST('/console/api/v1/flows/{id}/dry-run', { params: { path: { id } }, body: { profile_id: person! }, signal })),
    enabled: opened && person !== undefined,
    retry: false,
    gcTime: 0,
  })
  return (
    <Drawer opened={opened} onClose={onClose} position="right" size="md" title="Try it on a person">
      <Stack gap="md">
        <Text size="sm" c="dimmed">
          A dry run: the steps this profile would pass if it entered the flow now. Nothing is sent and nothing is changed.
        </Text>
        <PersonPicker label="Person" value={person} onChange={onPerson} />
        {person === undefined ? null : run.isError ? <Failed error={run.error} retry={() => void run.refetch()} /> : !run.data ? <Loading what="what would happen" /> : <Result run={run.data} onStep={onStep} />}
      </Stack>
    </Drawer>
  )
}

function Result({ run, onStep }: { run: Run; onStep: (step: string) => void }) {
  const names = useNames()
  const changes = run.steps.findIndex((s) => s.type === 'tag' || s.type === 'update_contact')
  const unseen = changes >= 0 && run.steps.some((s, i) => i > changes && s.type === 'condition')
  return (
    <Stack gap="sm" data-testid="dry-run">
      {!run.begins && (
        <Alert color="yellow" variant="light" p="xs" icon={<Icon name="alert" />}>
          This person was in the flow already and does not begin again, at least not now. If they did:
        </Alert>
      )}
      <Stack gap="xs" component="ol" m={0} p={0} style={{ listStyle: 'none' }}>
        {run.steps.map((s, i) => (
          <Box component="li" key={i} pl="sm" style={{ borderLeft: '2px solid var(--mantine-color-default-border)' }} data-testid="dry-step">
            <Group gap="xs" justify="space-between" wrap="nowrap" align="baseline">
              <button type="button" className="plain" onClick={() => onStep(s.id)}>
                {stepNames[s.type] ?? s.type} ({s.id})
              </button>
              <Text size="xs" c="dimmed" className="numbers" component="time" dateTime={s.at} style={{ flex: 'none' }}>
                {instant(s.at)}
              </Text>
            </Group>
            <Text size="sm" fw={600}>
              {resultInWords(s)}
            </Text>
            {s.why && (
              <Box mt={4} component="section" aria-label={`Why ${s.result} at ${s.id}`}>
                <ExplainedTree node={s.why} names={names} />
              </Box>
            )}
          </Box>
        ))}
      </Stack>
      <Group gap="xs" justify="space-between">
        <Group gap="xs">
          <Badge variant="filled" color="gray.7" tt="none">
            {run.outcome === 'exited' ? 'leaves the flow' : 'completes the flow'}
          </Badge>
          <Text size="sm">{instant(run.ends_at)}</Text>
        </Group>
        <AsOf at={run.as_of} />
      </Group>
      {unseen && (
        <Text size="xs" c="dimmed">
          Changes that a step makes to the person are not seen by later conditions here.
        </Text>
      )}
    </Stack>
  )
}
